#include <vector>

#include "base/multiversion.h"
#include "ops/pooling/pooling_kernels.h"

namespace crema {

namespace {

struct Geometry {
  explicit Geometry(const PoolingProblem& p)
      : problem(p),
        slices(p.input_depth, p.depth, p.output_depth, p.method != PoolingMethod::kSum),
        rows(p.input_height, p.vertical, p.output_height, p.method != PoolingMethod::kSum),
        columns(p.input_width, p.horizontal, p.output_width, p.method != PoolingMethod::kSum),
        filled_slices(slices.filled()),
        filled_rows(rows.filled()),
        filled_columns(columns.filled()),
        strip(PoolingStrip(p.horizontal)) {
    // Windows without an input element, and lanes behind the last window, sum to 0: any divisor will do.
    padded.assign(p.output_width + kPoolingLanes, 1.0f);
    for (int64_t i = 0; i < filled_columns; ++i) padded[i] = static_cast<float>(columns.padded[i]);
  }

  PoolingProblem problem;
  WindowRanges slices, rows, columns;
  int64_t filled_slices, filled_rows, filled_columns;  // windows that hold an input element; the others come last
  int64_t strip;
  std::vector<float> padded;  // width of each window
};

// The input columns that a strip of windows reaches over.
struct Span {
  CREMA_INLINE Span(const Geometry& g, int64_t first, int64_t n)
      : windows((n + kPoolingLanes - 1) / kPoolingLanes * kPoolingLanes),
        start(first * g.problem.horizontal.stride - g.problem.horizontal.pad),
        length((windows - 1) * g.problem.horizontal.stride + g.problem.horizontal.kernel),
        begin(start < 0 ? 0 : start),
        end(start + length < g.problem.input_width ? start + length : g.problem.input_width) {}
  int64_t windows;        // rounded up to whole lanes
  int64_t start, length;  // padding included
  int64_t begin, end;     // inside the input
};

// sums[i] = sum of the elements of column i in `rows` rows.
struct SumOfColumns {
  template <int kLanes>
  CREMA_INLINE static void Run(const float* source, int64_t row_stride, int64_t rows, float* sums, int64_t first) {
    const float* from = source + first;
    float sum[kLanes] = {};
    for (int64_t r = 0; r < rows; ++r, from += row_stride) {
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) sum[i] += from[i];
    }
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) sums[first + i] = sum[i];
  }
};

// The same of the elements of column i in `rows` rows of each of `slices` slices.
struct SumOfVolumeColumns {
  template <int kLanes>
  CREMA_INLINE static void Run(const float* source, int64_t slice_stride, int64_t slices, int64_t row_stride,
                               int64_t rows, float* sums, int64_t first) {
    const float* slice = source + first;
    float sum[kLanes] = {};
    for (int64_t d = 0; d < slices; ++d, slice += slice_stride) {
      const float* from = slice;
      for (int64_t r = 0; r < rows; ++r, from += row_stride) {
#pragma omp simd
        for (int i = 0; i < kLanes; ++i) sum[i] += from[i];
      }
    }
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) sums[first + i] = sum[i];
  }
};

// Outputs [first, first + n) of every row of one plane. kVolume: planes have slices. kWidth, kStride: 0, or those of
// the window.
template <bool kVolume, int kWidth, int kStride>
CREMA_MULTIVERSION void ForwardStrip(const Geometry& g, const float* source, int64_t first, int64_t n,
                                     float* destination) {
  const PoolingProblem& p = g.problem;
  const int64_t width = kWidth > 0 ? kWidth : p.horizontal.kernel, stride = kStride > 0 ? kStride : p.horizontal.stride;
  const Span span(g, first, n);
  float sums[kPoolingSpan];
  for (int64_t i = 0; i < span.length; ++i) sums[i] = 0;
  const int64_t lines = kVolume ? p.output_depth * p.output_height : p.output_height;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t slice = kVolume ? line / p.output_height : 0, row = line - slice * p.output_height;
    float* to = destination + line * p.output_width + first;
    if (row >= g.filled_rows || (kVolume && slice >= g.filled_slices)) {
      for (int64_t i = 0; i < n; ++i) to[i] = 0;
      continue;
    }
    const float* from = source + g.rows.begin[row] * p.input_width + span.begin;
    const int64_t rows = g.rows.end[row] - g.rows.begin[row];
    float* const inside = sums + span.begin - span.start;
    float height = static_cast<float>(g.rows.padded[row]);
    if constexpr (kVolume) {
      const int64_t front = g.slices.begin[slice], plane = p.input_height * p.input_width;
      CoverWithVectors<SumOfVolumeColumns>(span.end - span.begin, from + front * plane, plane,
                                           g.slices.end[slice] - front, p.input_width, rows, inside);
      height *= static_cast<float>(g.slices.padded[slice]);
    } else {
      CoverWithVectors<SumOfColumns>(span.end - span.begin, from, p.input_width, rows, inside);
    }
    for (int64_t block = 0; block < span.windows; block += kPoolingLanes) {
      float sum[kPoolingLanes] = {};
      for (int64_t c = 0; c < width; ++c) {
#pragma omp simd
        for (int64_t lane = 0; lane < kPoolingLanes; ++lane) sum[lane] += sums[(block + lane) * stride + c];
      }
      const float* padded = g.padded.data() + first + block;
#pragma omp simd
      for (int64_t lane = 0; lane < kPoolingLanes; ++lane) sum[lane] /= height * padded[lane];
      CopyLanes(sum, n - block < kPoolingLanes ? n - block : kPoolingLanes, to + block);
    }
  }
}

struct SumOfTaps {
  template <int kLanes>
  CREMA_INLINE static void Run(const float* source, int64_t taps, float* sums, int64_t first) {
    float sum[kLanes] = {};
    for (int64_t c = 0; c < taps; ++c) {
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) sum[i] += source[first + c + i];
    }
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) sums[first + i] = sum[i];
  }
};

// Adds what outputs [first, first + n) of every row give to the plane.
template <bool kVolume, int kWidth>
CREMA_MULTIVERSION void BackwardStrip(const Geometry& g, const float* destination_gradient, int64_t first, int64_t n,
                                      float* source_gradient) {
  const PoolingProblem& p = g.problem;
  const int64_t width = kWidth > 0 ? kWidth : p.horizontal.kernel, stride = p.horizontal.stride;
  const Span span(g, first, n);
  // Each window's share stands at the last column of the window, among zeros: the gradient of a column is then the sum
  // of the `width` entries from its own on.
  float shares[2 * kPoolingSpan], gradient[kPoolingSpan];
  for (int64_t i = 0; i < span.length + width; ++i) shares[i] = 0;
  const int64_t inside = span.end - span.begin;
  const int64_t filled = std::min(n, std::max<int64_t>(g.filled_columns - first, 0));
  const int64_t lines = kVolume ? g.filled_slices * p.output_height : g.filled_rows;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t slice = kVolume ? line / p.output_height : 0, row = line - slice * p.output_height;
    if (kVolume && row >= g.filled_rows) continue;
    const float* from = destination_gradient + line * p.output_width + first;
    const float height = static_cast<float>((kVolume ? g.slices.padded[slice] : 1) * g.rows.padded[row]);
    for (int64_t i = 0; i < filled; ++i) shares[i * stride + width - 1] = from[i] / (height * g.padded[first + i]);
    CoverWithVectors<SumOfTaps>(inside, shares + span.begin - span.start, width, gradient);
    const int64_t front = kVolume ? g.slices.begin[slice] : 0, back = kVolume ? g.slices.end[slice] : 1;
    for (int64_t d = front; d < back; ++d) {
      for (int64_t h = g.rows.begin[row]; h < g.rows.end[row]; ++h) {
        float* to = source_gradient + (d * p.input_height + h) * p.input_width + span.begin;
#pragma omp simd
        for (int64_t i = 0; i < inside; ++i) to[i] += gradient[i];
      }
    }
  }
}

using ForwardFunction = void (*)(const Geometry&, const float*, int64_t, int64_t, float*);

template <bool kVolume>
ForwardFunction FindForward(const PoolingWindow& horizontal) {
  if (horizontal.kernel == 2 && horizontal.stride == 2) return ForwardStrip<kVolume, 2, 2>;
  if (horizontal.kernel == 3 && horizontal.stride == 2) return ForwardStrip<kVolume, 3, 2>;
  if (horizontal.kernel == 3 && horizontal.stride == 1) return ForwardStrip<kVolume, 3, 1>;
  return ForwardStrip<kVolume, 0, 0>;
}

template <bool kVolume>
ForwardFunction FindBackward(const PoolingWindow& horizontal) {
  if (horizontal.kernel == 2) return BackwardStrip<kVolume, 2>;
  if (horizontal.kernel == 3) return BackwardStrip<kVolume, 3>;
  return BackwardStrip<kVolume, 0>;
}

class AveragePooling final : public PoolingKernel {
 public:
  explicit AveragePooling(const PoolingProblem& problem)
      : g_(problem),
        forward_(problem.volume() ? FindForward<true>(problem.horizontal) : FindForward<false>(problem.horizontal)),
        backward_(problem.volume() ? FindBackward<true>(problem.horizontal) : FindBackward<false>(problem.horizontal)) {
  }

  void Forward(const void* source, void* destination, void*, float*, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    ForEachPlane(p, [&](int64_t plane) {
      for (int64_t first = 0; first < p.output_width; first += g_.strip) {
        forward_(g_, static_cast<const float*>(source) + plane * p.input_plane(), first,
                 std::min(g_.strip, p.output_width - first),
                 static_cast<float*>(destination) + plane * p.output_plane());
      }
    });
  }

  void Backward(const void*, const void* destination_gradient, const void*, void* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    ForEachPlane(p, [&](int64_t plane) {
      float* gradient = static_cast<float*>(source_gradient) + plane * p.input_plane();
      std::fill_n(gradient, p.input_plane(), 0.0f);
      for (int64_t first = 0; first < p.output_width; first += g_.strip) {
        backward_(g_, static_cast<const float*>(destination_gradient) + plane * p.output_plane(), first,
                  std::min(g_.strip, p.output_width - first), gradient);
      }
    });
  }

 private:
  Geometry g_;
  ForwardFunction forward_, backward_;
};

}  // namespace

std::unique_ptr<PoolingKernel> MakeAveragePooling(const PoolingProblem& problem, const Device& device,
                                                  std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (!problem.sums()) {
    *why_not = "takes averages and sums only";
  } else if (problem.layout != Layout::kPlain) {
    *why_not = "takes plain images only";
  } else if (PoolingStrip(problem.horizontal) == 0) {
    *why_not = "kernel or stride is too large";
  } else {
    return std::make_unique<AveragePooling>(problem);
  }
  return nullptr;
}

}  // namespace crema
