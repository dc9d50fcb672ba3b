#include "base/check.h"
#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/arrays/rows.h"
#include "cuda/operations.h"
#include "ops/arrays/functors.h"

namespace crema::cuda {

namespace {

// Row `row` of bytes, as units of a type.
template <typename Unit>
__device__ const Unit* RowOf(const ByteRows& rows, int64_t row) {
  return reinterpret_cast<const Unit*>(static_cast<const char*>(rows.first) + row * rows.stride);
}
template <typename Unit>
__device__ Unit* RowOf(const MutableByteRows& rows, int64_t row) {
  return reinterpret_cast<Unit*>(static_cast<char*>(rows.first) + row * rows.stride);
}

template <typename Unit>
struct CopyUnits {
  ByteRows from;
  MutableByteRows to;

  struct Row {
    const Unit* from;
    Unit* to;
    __device__ void operator()(int64_t i) const { to[i] = from[i]; }
  };
  __device__ Row operator()(int64_t row) const { return {RowOf<Unit>(from, row), RowOf<Unit>(to, row)}; }
};

template <int kWidth, typename Number>
struct RectifyUnits {
  ByteRows from;
  MutableByteRows to;

  using Unit = Lanes<kWidth, Number>;
  struct Row {
    const Unit* from;
    Unit* to;
    __device__ void operator()(int64_t i) const {
      Unit unit = from[i];
      for (int k = 0; k < kWidth; ++k) unit.values[k] = Number(formula::Relu()(unit.values[k]));
      to[i] = unit;
    }
  };
  __device__ Row operator()(int64_t row) const { return {RowOf<Unit>(from, row), RowOf<Unit>(to, row)}; }
};

template <int kWidth, typename Number>
struct RectifyGradientUnits {
  ByteRows gradient, rectified;
  MutableByteRows to;

  using Unit = Lanes<kWidth, Number>;
  struct Row {
    const Unit *gradient, *rectified;
    Unit* to;
    __device__ void operator()(int64_t i) const {
      Unit unit = gradient[i];
      const Unit known = rectified[i];
      for (int k = 0; k < kWidth; ++k) {
        unit.values[k] = Number(formula::ReluGradient()(unit.values[k], known.values[k]));
      }
      to[i] = unit;
    }
  };
  __device__ Row operator()(int64_t row) const {
    return {RowOf<Unit>(gradient, row), RowOf<Unit>(rectified, row), RowOf<Unit>(to, row)};
  }
};

bool IsMultiple(const void* first, int64_t stride, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(bytes) == 0 && stride % bytes == 0;
}

struct BoxOut {
  Box box;
  const float* whole;
  float* part;

  struct Row {
    const float* from;
    float* to;
    __device__ void operator()(int64_t i) const { to[i] = from[i]; }
  };
  __device__ Row operator()(int64_t row) const { return {whole + box.RowBegin(row), part + row * box.width()}; }
};

struct BoxIn {
  Box box;
  const float* part;
  float* whole;

  __device__ BoxOut::Row operator()(int64_t row) const { return {part + row * box.width(), whole + box.RowBegin(row)}; }
};

// The same in packs.
template <typename Floats>
struct InPacks {
  Floats floats;

  struct Row {
    const Pack<float>* from;
    Pack<float>* to;
    __device__ void operator()(int64_t i) const { to[i] = from[i]; }
  };
  __device__ Row operator()(int64_t row) const {
    const BoxOut::Row of_floats = floats(row);
    return {reinterpret_cast<const Pack<float>*>(of_floats.from), reinterpret_cast<Pack<float>*>(of_floats.to)};
  }
};

template <typename Floats>
void CopyBox(const Queue& queue, const Box& box, const Floats& floats) {
  constexpr int64_t kWidth = Pack<float>::kWidth;
  if (box.IsMultipleOf(kWidth) && IsPackAligned(floats.whole) && IsPackAligned(floats.part)) {
    ForEachInRows(queue, box.rows(), box.width() / kWidth, InPacks<Floats>{floats});
  } else {
    ForEachInRows(queue, box.rows(), box.width(), floats);
  }
}

}  // namespace

void CudaOperations::Copy(const void* from, void* to, size_t bytes) {
  if (bytes == 0 || from == to) return;
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, queue().stream), "copying on the GPU");
}

void CudaOperations::CopyRows(int64_t rows, int64_t width, ByteRows from, MutableByteRows to) {
  if (rows <= 0 || width <= 0) return;
  if (rows == 1 || (from.stride == width && to.stride == width)) {
    return Copy(from.first, to.first, static_cast<size_t>(rows * width));
  }
  const auto copy = [&]<typename Unit>(Unit*) {
    constexpr int64_t kBytes = sizeof(Unit);
    if (width % kBytes != 0 || !IsMultiple(from.first, from.stride, kBytes) ||
        !IsMultiple(to.first, to.stride, kBytes)) {
      return false;
    }
    ForEachInRows(queue(), rows, width / kBytes, CopyUnits<Unit>{from, to});
    return true;
  };
  copy(static_cast<Pack<float>*>(nullptr)) || copy(static_cast<uint32_t*>(nullptr)) ||
      copy(static_cast<uint16_t*>(nullptr)) || copy(static_cast<uint8_t*>(nullptr));
}

void CudaOperations::CopyRectified(DType dtype, int64_t rows, int64_t width, ByteRows from, MutableByteRows to) {
  WithNumber(dtype, [&]<typename Number>(Number*) {
    constexpr int kWidth = Pack<Number>::kWidth;
    if (width % 16 == 0 && IsMultiple(from.first, from.stride, 16) && IsMultiple(to.first, to.stride, 16)) {
      ForEachInRows(queue(), rows, width / 16, RectifyUnits<kWidth, Number>{from, to});
    } else {
      ForEachInRows(queue(), rows, width / static_cast<int64_t>(sizeof(Number)), RectifyUnits<1, Number>{from, to});
    }
  });
}

void CudaOperations::CopyRectifiedGradient(DType dtype, int64_t rows, int64_t width, ByteRows gradient,
                                           ByteRows rectified, MutableByteRows to) {
  WithNumber(dtype, [&]<typename Number>(Number*) {
    constexpr int kWidth = Pack<Number>::kWidth;
    if (width % 16 == 0 && IsMultiple(gradient.first, gradient.stride, 16) &&
        IsMultiple(rectified.first, rectified.stride, 16) && IsMultiple(to.first, to.stride, 16)) {
      ForEachInRows(queue(), rows, width / 16, RectifyGradientUnits<kWidth, Number>{gradient, rectified, to});
    } else {
      ForEachInRows(queue(), rows, width / static_cast<int64_t>(sizeof(Number)),
                    RectifyGradientUnits<1, Number>{gradient, rectified, to});
    }
  });
}

void CudaOperations::CopyOut(const Box& box, const float* whole, float* part) {
  CopyBox(queue(), box, BoxOut{box, whole, part});
}

void CudaOperations::CopyIn(const Box& box, const float* part, float* whole) {
  CopyBox(queue(), box, BoxIn{box, part, whole});
}

}  // namespace crema::cuda
