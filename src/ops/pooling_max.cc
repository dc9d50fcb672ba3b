#include <limits>
#include <vector>

#include "base/multiversion.h"
#include "ops/pooling_kernels.h"

namespace crema {

namespace {

// The row of a column that is padding: larger than any real one, and a position made of it still fits 32 bits.
constexpr int32_t kPaddingRow = 1 << 16;

struct Geometry {
  explicit Geometry(const PoolingProblem& p)
      : problem(p),
        rows(p.input_height, p.vertical, p.output_height),
        columns(p.input_width, p.horizontal, p.output_width),
        filled_rows(rows.filled()),
        filled_columns(columns.filled()),
        strip(PoolingStrip(p.horizontal)) {}

  // Of the first element of window (row, column), which may be padding, in the input plane.
  int64_t Corner(int64_t row, int64_t column) const {
    return (row * problem.vertical.stride - problem.vertical.pad) * problem.input_width +
           column * problem.horizontal.stride - problem.horizontal.pad;
  }

  PoolingProblem problem;
  WindowRanges rows, columns;
  int64_t filled_rows, filled_columns;  // windows that hold an input element; the others come last
  int64_t strip;
};

// largest[i], where[i] = largest of the `rows` elements of column i and its row, the first of equals. kRows: 0, or
// rows.
template <int kRows>
CREMA_INLINE void LargestOfColumns(const float* source, int64_t row_stride, int32_t first_row, int64_t rows, int64_t n,
                                   float* largest, int32_t* where) {
  if (kRows > 0 && rows == kRows) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      float best = source[i];
      int32_t row = 0;
      for (int r = 1; r < kRows; ++r) {
        const float x = source[r * row_stride + i];
        row = x > best ? r : row;
        best = x > best ? x : best;
      }
      largest[i] = best;
      where[i] = first_row + row;
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    largest[i] = source[i];
    where[i] = first_row;
  }
  for (int64_t r = 1; r < rows; ++r) {
    const float* from = source + r * row_stride;
    const int32_t row = first_row + static_cast<int32_t>(r);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      where[i] = from[i] > largest[i] ? row : where[i];
      largest[i] = from[i] > largest[i] ? from[i] : largest[i];
    }
  }
}

// Of `n` windows (a multiple of the lanes) over the results for columns: the largest element and its position
// row * width + column, the first of equals in row-major order. kWidth, kStride: 0, or width and stride.
template <int kWidth, int kStride>
CREMA_INLINE void LargestOfWindows(const float* largest, const int32_t* where, int64_t width, int64_t stride, int64_t n,
                                   float* value, int32_t* position) {
  if (kWidth > 0) width = kWidth;
  if (kStride > 0) stride = kStride;
  for (int64_t first = 0; first < n; first += kPoolingLanes) {
    float best[kPoolingLanes];
    int32_t row[kPoolingLanes], column[kPoolingLanes];
#pragma omp simd
    for (int64_t lane = 0; lane < kPoolingLanes; ++lane) {
      best[lane] = largest[(first + lane) * stride];
      row[lane] = where[(first + lane) * stride];
      column[lane] = 0;
    }
    for (int64_t c = 1; c < width; ++c) {
#pragma omp simd
      for (int64_t lane = 0; lane < kPoolingLanes; ++lane) {
        const float x = largest[(first + lane) * stride + c];
        const int32_t r = where[(first + lane) * stride + c];
        const bool better = (x > best[lane]) | ((x == best[lane]) & (r < row[lane]));
        best[lane] = better ? x : best[lane];
        row[lane] = better ? r : row[lane];
        column[lane] = better ? static_cast<int32_t>(c) : column[lane];
      }
    }
#pragma omp simd
    for (int64_t lane = 0; lane < kPoolingLanes; ++lane) {
      value[first + lane] = best[lane];
      position[first + lane] = row[lane] * static_cast<int32_t>(width) + column[lane];
    }
  }
}

// Outputs [first, first + n) of every row of one plane; saved holds Positions, or is null.
template <typename Position, int kRows, int kWidth, int kStride>
CREMA_MULTIVERSION void PoolStrip(const Geometry& g, const float* source, int64_t first, int64_t n, float* destination,
                                  Position* saved, float* indices) {
  const PoolingProblem& p = g.problem;
  const int64_t width = p.horizontal.kernel, stride = p.horizontal.stride;
  const int64_t whole = (n + kPoolingLanes - 1) / kPoolingLanes * kPoolingLanes;
  const int64_t start = first * stride - p.horizontal.pad, span = (whole - 1) * stride + width;
  const int64_t begin = start < 0 ? 0 : start, end = start + span < p.input_width ? start + span : p.input_width;
  float largest[kPoolingSpan], value[128];
  int32_t where[kPoolingSpan], position[128];
  for (int64_t i = 0; i < span; ++i) {
    largest[i] = -std::numeric_limits<float>::infinity();
    where[i] = kPaddingRow;
  }
  for (int64_t row = 0; row < p.output_height; ++row) {
    const int64_t top = g.rows.begin[row], at = row * p.output_width + first;
    const int64_t clipped = top - (row * p.vertical.stride - p.vertical.pad);
    const int64_t filled = row < g.filled_rows ? std::min(n, std::max<int64_t>(g.filled_columns - first, 0)) : 0;
    if (filled > 0) {
      LargestOfColumns<kRows>(source + top * p.input_width + begin, p.input_width, static_cast<int32_t>(clipped),
                              g.rows.end[row] - top, end - begin, largest + begin - start, where + begin - start);
      LargestOfWindows<kWidth, kStride>(largest, where, width, stride, whole, value, position);
    }
    for (int64_t i = 0; i < filled; ++i) {
      destination[at + i] = value[i];
      // Only a window of NaN alone can have left the padding as its largest: a real element, for Backward's sake.
      const int64_t column = first + i;
      const int64_t real = clipped * width + g.columns.begin[column] - (column * stride - p.horizontal.pad);
      position[i] = position[i] >= kPaddingRow * static_cast<int32_t>(width) ? static_cast<int32_t>(real) : position[i];
    }
    for (int64_t i = filled; i < n; ++i) {
      destination[at + i] = 0;
      position[i] = 0;
    }
    if (saved) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) saved[at + i] = static_cast<Position>(position[i]);
    }
    if (indices) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t pixel = g.Corner(row, first + i) + position[i] / width * p.input_width + position[i] % width;
        indices[at + i] = i < filled ? static_cast<float>(pixel) : -1.0f;
      }
    }
  }
}

template <typename Position>
using StripFunction = void (*)(const Geometry&, const float*, int64_t, int64_t, float*, Position*, float*);

template <typename Position>
StripFunction<Position> FindStripFunction(const PoolingProblem& p) {
  if (p.vertical.kernel == p.horizontal.kernel) {
    if (p.horizontal.kernel == 2 && p.horizontal.stride == 2) return PoolStrip<Position, 2, 2, 2>;
    if (p.horizontal.kernel == 3 && p.horizontal.stride == 2) return PoolStrip<Position, 3, 3, 2>;
    if (p.horizontal.kernel == 3 && p.horizontal.stride == 1) return PoolStrip<Position, 3, 3, 1>;
  }
  return PoolStrip<Position, 0, 0, 0>;
}

// The winner of a window is kept as its position in the unclipped window, which fits a byte for kernels up to 16x16.
template <typename Position>
class MaxPooling final : public PoolingKernel {
 public:
  explicit MaxPooling(const PoolingProblem& problem) : g_(problem), pool_(FindStripFunction<Position>(problem)) {
    for (int64_t h = 0; h < problem.vertical.kernel; ++h) {
      for (int64_t w = 0; w < problem.horizontal.kernel; ++w) offsets_.push_back(h * problem.input_width + w);
    }
  }

  TensorSpec saved() const override {
    if (!g_.problem.backward) return {Shape{0}, DType::kF32};
    return {Shape{g_.problem.planes, g_.problem.output_height, g_.problem.output_width},
            sizeof(Position) == 1 ? DType::kU8 : DType::kI32};
  }

  void Forward(const float* source, float* destination, void* saved, float* indices, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    ForEachPlane(p, [&](int64_t plane) {
      const int64_t at = plane * p.output_height * p.output_width;
      for (int64_t first = 0; first < p.output_width; first += g_.strip) {
        pool_(g_, source + plane * p.input_height * p.input_width, first, std::min(g_.strip, p.output_width - first),
              destination + at, saved ? static_cast<Position*>(saved) + at : nullptr, indices ? indices + at : nullptr);
      }
    });
  }

  void Backward(const float*, const float* destination_gradient, const void* saved, float* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    ForEachPlane(p, [&](int64_t plane) {
      float* gradient = source_gradient + plane * p.input_height * p.input_width;
      std::fill_n(gradient, p.input_height * p.input_width, 0.0f);
      for (int64_t row = 0; row < g_.filled_rows; ++row) {
        const int64_t at = (plane * p.output_height + row) * p.output_width;
        const Position* positions = static_cast<const Position*>(saved) + at;
        const float* from = destination_gradient + at;
        const int64_t corner = g_.Corner(row, 0), stride = p.horizontal.stride;
        for (int64_t column = 0; column < g_.filled_columns; ++column) {
          gradient[corner + column * stride + offsets_[positions[column]]] += from[column];
        }
      }
    });
  }

 private:
  Geometry g_;
  StripFunction<Position> pool_;
  std::vector<int64_t> offsets_;  // of a position in the window from the window's corner
};

}  // namespace

std::unique_ptr<PoolingKernel> MakeMaxPooling(const PoolingProblem& problem, const Device& device,
                                              std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.method != PoolingMethod::kMax) {
    *why_not = "takes the maximum only";
  } else if (PoolingStrip(problem.horizontal) == 0 || problem.vertical.kernel >= kPaddingRow) {
    *why_not = "kernel or stride is too large";
  } else if (problem.vertical.kernel * problem.horizontal.kernel <= 256) {
    return std::make_unique<MaxPooling<uint8_t>>(problem);
  } else {
    return std::make_unique<MaxPooling<int32_t>>(problem);
  }
  return nullptr;
}

}  // namespace crema
