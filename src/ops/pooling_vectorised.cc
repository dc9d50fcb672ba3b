// Max and average pooling, one output row at a time: vectors run over the outputs of a row.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/pooling_kernels.h"

namespace crema {

namespace {

constexpr int64_t kChunk = 256;     // outputs of a row worked on at once; their state stays in the first cache
constexpr int64_t kMaxSpan = 4096;  // input columns that such a chunk may reach over
constexpr int64_t kGrain = 16384;   // output elements worth waking a thread for

// destination[i], taps[i] = largest element of window i and its position r * kWidth + c, the first of equals.
template <int kRows, int kWidth, int kStride>
CREMA_MULTIVERSION void MaxOfSmallWindows(const float* source, int64_t row_stride, int64_t n, float* destination,
                                          int32_t* taps) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float* at = source + i * kStride;
    float best = at[0];
    int32_t tap = 0;
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kWidth; ++c) {
        if (r + c == 0) continue;
        const float x = at[r * row_stride + c];
        tap = x > best ? r * kWidth + c : tap;
        best = x > best ? x : best;
      }
    }
    destination[i] = best;
    taps[i] = tap;
  }
}

using SmallWindows = void (*)(const float*, int64_t, int64_t, float*, int32_t*);

template <int kWidth, int kStride>
constexpr std::array<SmallWindows, 3> kByRows = {MaxOfSmallWindows<1, kWidth, kStride>,
                                                 MaxOfSmallWindows<2, kWidth, kStride>,
                                                 MaxOfSmallWindows<3, kWidth, kStride>};

const SmallWindows* FindSmallWindows(const PoolingWindow& horizontal, int64_t rows) {
  if (rows > 3) return nullptr;
  if (horizontal.kernel == 2 && horizontal.stride == 2) return kByRows<2, 2>.data();
  if (horizontal.kernel == 2 && horizontal.stride == 1) return kByRows<2, 1>.data();
  if (horizontal.kernel == 3 && horizontal.stride == 2) return kByRows<3, 2>.data();
  if (horizontal.kernel == 3 && horizontal.stride == 1) return kByRows<3, 1>.data();
  if (horizontal.kernel == 3 && horizontal.stride == 3) return kByRows<3, 3>.data();
  return nullptr;
}

CREMA_MULTIVERSION void UpdateMax(const float* source, int64_t stride, int32_t tap, int64_t n, float* best,
                                  int32_t* taps) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float x = source[i * stride];
    taps[i] = x > best[i] ? tap : taps[i];
    best[i] = x > best[i] ? x : best[i];
  }
}

template <typename T>
CREMA_MULTIVERSION void Narrow(const int32_t* from, int64_t n, T* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

CREMA_MULTIVERSION void AddRow(const float* from, int64_t n, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

class VectorisedPooling : public PoolingKernel {
 public:
  explicit VectorisedPooling(const PoolingProblem& problem)
      : problem_(problem),
        rows_(problem.input_height, problem.vertical, problem.output_height),
        columns_(problem.input_width, problem.horizontal, problem.output_width),
        input_pixels_(problem.input_height * problem.input_width),
        output_pixels_(problem.output_height * problem.output_width) {}

 protected:
  template <typename Body>
  void ForEachPlane(const Body& body) const {
    ParallelFor(problem_.planes, std::max<int64_t>(1, kGrain / output_pixels_), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) body(plane);
    });
  }

  PoolingProblem problem_;
  WindowRanges rows_, columns_;
  int64_t input_pixels_, output_pixels_;
};

// The winner of a window is kept as its position in the unclipped window, which fits a byte for kernels up to 16x16.
template <typename Position>
class MaxPooling final : public VectorisedPooling {
 public:
  explicit MaxPooling(const PoolingProblem& problem)
      : VectorisedPooling(problem),
        small_(FindSmallWindows(problem.horizontal, problem.vertical.kernel)),
        filled_rows_(rows_.filled()),
        filled_columns_(columns_.filled()) {
    for (int64_t h = 0; h < problem.vertical.kernel; ++h) {
      for (int64_t w = 0; w < problem.horizontal.kernel; ++w) offsets_.push_back(h * problem.input_width + w);
    }
  }

  TensorSpec saved() const override {
    if (!problem_.backward) return {Shape{0}, DType::kF32};
    return {Shape{problem_.planes, problem_.output_height, problem_.output_width},
            sizeof(Position) == 1 ? DType::kU8 : DType::kI32};
  }

  void Forward(const float* source, float* destination, void* saved, float* indices, const RandomStream*) override {
    ForEachPlane([&](int64_t plane) {
      for (int64_t row = 0; row < problem_.output_height; ++row) {
        for (int64_t first = 0; first < problem_.output_width; first += kChunk) {
          const int64_t n = std::min(kChunk, problem_.output_width - first);
          const int64_t at = plane * output_pixels_ + row * problem_.output_width + first;
          int32_t taps[kChunk];
          PoolRow(source + plane * input_pixels_, row, first, n, destination + at, taps);
          if (saved) Narrow(taps, n, static_cast<Position*>(saved) + at);
          if (indices) {
            for (int64_t i = 0; i < n; ++i) indices[at + i] = static_cast<float>(Pixel(row, first + i, taps[i]));
          }
        }
      }
    });
  }

  void Backward(const float*, const float* destination_gradient, const void* saved, float* source_gradient) override {
    ForEachPlane([&](int64_t plane) {
      float* gradient = source_gradient + plane * input_pixels_;
      std::fill_n(gradient, input_pixels_, 0.0f);
      const int64_t begin = plane * output_pixels_;
      for (int64_t row = 0; row < filled_rows_; ++row) {
        const Position* taps = static_cast<const Position*>(saved) + begin + row * problem_.output_width;
        const float* from = destination_gradient + begin + row * problem_.output_width;
        const int64_t corner = Corner(row, 0), stride = problem_.horizontal.stride;
        for (int64_t column = 0; column < filled_columns_; ++column) {
          gradient[corner + column * stride + offsets_[taps[column]]] += from[column];
        }
      }
    });
  }

 private:
  // Of the unclipped window in the input plane.
  int64_t Corner(int64_t row, int64_t column) const {
    return (row * problem_.vertical.stride - problem_.vertical.pad) * problem_.input_width +
           column * problem_.horizontal.stride - problem_.horizontal.pad;
  }

  int64_t Pixel(int64_t row, int64_t column, int32_t tap) const {
    return row < filled_rows_ && column < filled_columns_ ? Corner(row, column) + offsets_[tap] : -1;
  }

  // Outputs [first, first + n) of one row.
  void PoolRow(const float* plane, int64_t row, int64_t first, int64_t n, float* destination, int32_t* taps) const {
    const int64_t top = rows_.begin[row], rows = rows_.end[row] - top;
    const int64_t width = problem_.horizontal.kernel, stride = problem_.horizontal.stride;
    const int64_t above = top - (row * problem_.vertical.stride - problem_.vertical.pad);  // rows clipped off
    const int64_t begin = rows > 0 ? std::clamp(columns_.first_whole - first, int64_t{0}, n) : n;
    const int64_t end = rows > 0 ? std::clamp(columns_.end_whole - first, begin, n) : n;
    for (int64_t i = 0; i < n; ++i) {
      if (i == begin) i = end;
      if (i < n) PoolWindow(plane, row, first + i, destination + i, taps + i);
    }
    if (begin == end) return;
    const float* source = plane + top * problem_.input_width + (first + begin) * stride - problem_.horizontal.pad;
    float* best = destination + begin;
    int32_t* best_taps = taps + begin;
    const int64_t whole = end - begin;
    if (small_) {
      small_[rows - 1](source, problem_.input_width, whole, best, best_taps);
      if (above > 0) {
        for (int64_t i = 0; i < whole; ++i) best_taps[i] += static_cast<int32_t>(above * width);
      }
      return;
    }
    for (int64_t i = 0; i < whole; ++i) best[i] = source[i * stride];
    std::fill_n(best_taps, whole, static_cast<int32_t>(above * width));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        UpdateMax(source + r * problem_.input_width + c, stride, static_cast<int32_t>((above + r) * width + c), whole,
                  best, best_taps);
      }
    }
  }

  // One window that the border may clip.
  void PoolWindow(const float* plane, int64_t row, int64_t column, float* destination, int32_t* tap) const {
    const int64_t top = row * problem_.vertical.stride - problem_.vertical.pad;
    const int64_t left = column * problem_.horizontal.stride - problem_.horizontal.pad;
    bool found = false;
    *destination = 0;
    *tap = 0;
    for (int64_t h = rows_.begin[row]; h < rows_.end[row]; ++h) {
      for (int64_t w = columns_.begin[column]; w < columns_.end[column]; ++w) {
        const float x = plane[h * problem_.input_width + w];
        if (found && !(x > *destination)) continue;
        found = true;
        *destination = x;
        *tap = static_cast<int32_t>((h - top) * problem_.horizontal.kernel + w - left);
      }
    }
  }

  const SmallWindows* small_;             // by number of rows - 1; null: any size
  int64_t filled_rows_, filled_columns_;  // windows that hold an input element; the others come last
  std::vector<int64_t> offsets_;          // of a position in the window from the window's corner
};

class AveragePooling final : public VectorisedPooling {
 public:
  explicit AveragePooling(const PoolingProblem& problem)
      : VectorisedPooling(problem), chunk_((kMaxSpan - problem.horizontal.kernel) / problem.horizontal.stride + 1) {}

  void Forward(const float* source, float* destination, void*, float*, const RandomStream*) override {
    ForEachPlane([&](int64_t plane) {
      ForEachChunk([&](int64_t row, int64_t first, int64_t end, int64_t left, int64_t right) {
        float sums[kMaxSpan];
        std::fill_n(sums, right - left, 0.0f);
        for (int64_t h = rows_.begin[row]; h < rows_.end[row]; ++h) {
          AddRow(source + plane * input_pixels_ + h * problem_.input_width + left, right - left, sums);
        }
        float* to = destination + plane * output_pixels_ + row * problem_.output_width;
        for (int64_t i = first; i < end; ++i) {
          float sum = 0;
          for (int64_t w = columns_.begin[i] - left; w < columns_.end[i] - left; ++w) sum += sums[w];
          to[i] = Empty(row, i) ? 0.0f : sum / Padded(row, i);
        }
      });
    });
  }

  void Backward(const float*, const float* destination_gradient, const void*, float* source_gradient) override {
    ForEachPlane([&](int64_t plane) {
      std::fill_n(source_gradient + plane * input_pixels_, input_pixels_, 0.0f);
      ForEachChunk([&](int64_t row, int64_t first, int64_t end, int64_t left, int64_t right) {
        float shares[kMaxSpan];
        std::fill_n(shares, right - left, 0.0f);
        const float* from = destination_gradient + plane * output_pixels_ + row * problem_.output_width;
        for (int64_t i = first; i < end; ++i) {
          if (Empty(row, i)) continue;
          const float share = from[i] / Padded(row, i);
          for (int64_t w = columns_.begin[i] - left; w < columns_.end[i] - left; ++w) shares[w] += share;
        }
        for (int64_t h = rows_.begin[row]; h < rows_.end[row]; ++h) {
          AddRow(shares, right - left, source_gradient + plane * input_pixels_ + h * problem_.input_width + left);
        }
      });
    });
  }

 private:
  // body(output row, outputs [first, end) of it, input columns [left, right) that they reach over)
  template <typename Body>
  void ForEachChunk(const Body& body) const {
    for (int64_t row = 0; row < problem_.output_height; ++row) {
      for (int64_t first = 0; first < problem_.output_width; first += chunk_) {
        const int64_t end = std::min(first + chunk_, problem_.output_width);
        body(row, first, end, columns_.begin[first], std::max(columns_.begin[first], columns_.end[end - 1]));
      }
    }
  }

  bool Empty(int64_t row, int64_t column) const {
    return rows_.begin[row] >= rows_.end[row] || columns_.begin[column] >= columns_.end[column];
  }
  float Padded(int64_t row, int64_t column) const {
    return static_cast<float>(rows_.padded[row] * columns_.padded[column]);
  }

  int64_t chunk_;
};

}  // namespace

std::unique_ptr<PoolingKernel> MakePoolingVectorised(const PoolingProblem& problem, const Device& device,
                                                     std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
    return nullptr;
  }
  switch (problem.method) {
    case PoolingMethod::kMax:
      if (problem.vertical.kernel * problem.horizontal.kernel <= 256)
        return std::make_unique<MaxPooling<uint8_t>>(problem);
      return std::make_unique<MaxPooling<int32_t>>(problem);
    case PoolingMethod::kAverage:
      if (problem.horizontal.kernel <= kMaxSpan) return std::make_unique<AveragePooling>(problem);
      *why_not = "kernel is wider than " + std::to_string(kMaxSpan);
      return nullptr;
    case PoolingMethod::kStochastic:
      break;
  }
  *why_not = "does max and average pooling only";
  return nullptr;
}

}  // namespace crema
