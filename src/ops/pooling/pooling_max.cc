#include <limits>
#include <vector>

#include "base/multiversion.h"
#include "ops/pooling/pooling_kernels.h"

namespace crema {

namespace {

// The row of a column that is padding: larger than any real one (in volumes the rows of a window's slices are counted
// through), and a position made of it still fits 32 bits.
constexpr int32_t kPaddingRow = 1 << 16;

// The rows of a volume that a window reaches over, its padding left out.
struct VolumeRows {
  int64_t slices, rows, slice_stride, row_stride;
  int32_t first, next_slice;  // which row of the window the first one is, and how many later the next slice's begins
};

struct Geometry {
  explicit Geometry(const PoolingProblem& p)
      : problem(p),
        slices(p.input_depth, p.depth, p.output_depth),
        rows(p.input_height, p.vertical, p.output_height),
        columns(p.input_width, p.horizontal, p.output_width),
        filled_slices(slices.filled()),
        filled_rows(rows.filled()),
        filled_columns(columns.filled()),
        strip(PoolingStrip(p.horizontal)),
        last_column(p.output_width + kPoolingLanes, 0) {
    for (int64_t i = 0; i < filled_columns; ++i) {
      last_column[i] = static_cast<int32_t>(columns.end[i] - 1 - (i * p.horizontal.stride - p.horizontal.pad));
    }
  }

  // Of the first element of window (slice, row, column), which may be padding, in the input plane.
  int64_t Corner(int64_t slice, int64_t row, int64_t column) const {
    const int64_t front = slice * problem.depth.stride - problem.depth.pad;
    return (front * problem.input_height + row * problem.vertical.stride - problem.vertical.pad) * problem.input_width +
           column * problem.horizontal.stride - problem.horizontal.pad;
  }
  VolumeRows RowsOf(int64_t slice, int64_t row) const {
    const PoolingProblem& p = problem;
    const int64_t clipped_slices = slices.begin[slice] - (slice * p.depth.stride - p.depth.pad);
    const int64_t clipped_rows = rows.begin[row] - (row * p.vertical.stride - p.vertical.pad);
    return {slices.end[slice] - slices.begin[slice],
            rows.end[row] - rows.begin[row],
            p.input_height * p.input_width,
            p.input_width,
            static_cast<int32_t>(clipped_slices * p.vertical.kernel + clipped_rows),
            static_cast<int32_t>(p.vertical.kernel)};
  }
  // What a position in a window adds to its corner.
  CREMA_INLINE int64_t OffsetOf(int64_t position) const {
    const int64_t width = problem.horizontal.kernel, line = position / width;
    const int64_t slice = problem.volume() ? line / problem.vertical.kernel : 0;
    const int64_t row = line - slice * problem.vertical.kernel;
    return (slice * problem.input_height + row) * problem.input_width + position % width;
  }

  PoolingProblem problem;
  WindowRanges slices, rows, columns;
  int64_t filled_slices, filled_rows, filled_columns;  // windows that hold an input element; the others come last
  int64_t strip;
  std::vector<int32_t> last_column;  // of each window that is not padding, from the window's left edge
};

// largest[i], where[i] = largest of the `rows` elements of column i and its row, the first of equals. kRows: 0, or
// rows.
template <int kRows>
struct LargestOfColumns {
  template <int kLanes>
  CREMA_INLINE static void Run(const float* source, int64_t row_stride, int32_t first_row, int64_t rows, int32_t width,
                               float* largest, int32_t* where, int64_t first) {
    const int64_t count = kRows > 0 ? kRows : rows;
    const float* from = source + first;
    float best[kLanes];
    int32_t row[kLanes];
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      best[i] = from[i];
      row[i] = first_row * width;
    }
    for (int64_t r = 1; r < count; ++r) {
      from += row_stride;
      const int32_t here = (first_row + static_cast<int32_t>(r)) * width;
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) {
        row[i] = from[i] > best[i] ? here : row[i];
        best[i] = from[i] > best[i] ? from[i] : best[i];
      }
    }
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      largest[first + i] = best[i];
      where[first + i] = row[i];
    }
  }
};

// largest[i], where[i] = largest of the elements of column i in a window's rows and its row, the first of equals.
struct LargestOfVolumeColumns {
  template <int kLanes>
  CREMA_INLINE static void Run(const float* source, const VolumeRows& window, int32_t width, float* largest,
                               int32_t* where, int64_t first) {
    const float* slice = source + first;
    float best[kLanes];
    int32_t row[kLanes];
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      best[i] = slice[i];
      row[i] = window.first * width;
    }
    for (int64_t d = 0; d < window.slices; ++d, slice += window.slice_stride) {
      const float* from = slice;
      int32_t here = (window.first + static_cast<int32_t>(d) * window.next_slice) * width;
      for (int64_t r = 0; r < window.rows; ++r, from += window.row_stride, here += width) {
#pragma omp simd
        for (int i = 0; i < kLanes; ++i) {
          row[i] = from[i] > best[i] ? here : row[i];
          best[i] = from[i] > best[i] ? from[i] : best[i];
        }
      }
    }
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      largest[first + i] = best[i];
      where[first + i] = row[i];
    }
  }
};

// Of kPoolingLanes windows over the results for columns, `where` counting kernel widths: the largest element and its
// position row * width + column, the first of equals in row-major order. kWidth, kStride: 0, or width and stride.
template <int kWidth, int kStride>
CREMA_INLINE void LargestOfWindows(const float* largest, const int32_t* where, int64_t width, int64_t stride,
                                   float* value, int32_t* position) {
  if (kWidth > 0) width = kWidth;
  if (kStride > 0) stride = kStride;
#pragma omp simd
  for (int64_t lane = 0; lane < kPoolingLanes; ++lane) {
    value[lane] = largest[lane * stride];
    position[lane] = where[lane * stride];
  }
  for (int64_t c = 1; c < width; ++c) {
    const int32_t column = static_cast<int32_t>(c);
#pragma omp simd
    for (int64_t lane = 0; lane < kPoolingLanes; ++lane) {
      const float x = largest[lane * stride + c];
      const int32_t here = where[lane * stride + c] + column;
      const bool better = (x > value[lane]) | ((x == value[lane]) & (here < position[lane]));
      value[lane] = better ? x : value[lane];
      position[lane] = better ? here : position[lane];
    }
  }
}

// Output `at` is of a window without any input element.
template <typename Position>
CREMA_INLINE void SetEmpty(int64_t at, float* destination, Position* saved, float* indices) {
  destination[at] = 0;
  if (saved) saved[at] = 0;
  if (indices) indices[at] = -1;
}

// Outputs [first, first + n) of every row of one plane; saved holds Positions, or is null. kVolume: planes have slices.
template <typename Position, bool kVolume, int kRows, int kWidth, int kStride>
CREMA_MULTIVERSION void PoolStrip(const Geometry& g, const float* source, int64_t first, int64_t n, float* destination,
                                  Position* saved, float* indices) {
  const PoolingProblem& p = g.problem;
  const int64_t width = kWidth > 0 ? kWidth : p.horizontal.kernel, stride = kStride > 0 ? kStride : p.horizontal.stride;
  const int64_t whole = (n + kPoolingLanes - 1) / kPoolingLanes * kPoolingLanes;
  const int64_t start = first * stride - p.horizontal.pad, span = (whole - 1) * stride + width;
  const int64_t begin = start < 0 ? 0 : start, end = start + span < p.input_width ? start + span : p.input_width;
  float largest[kPoolingSpan];
  int32_t where[kPoolingSpan];
  for (int64_t i = 0; i < span; ++i) {
    largest[i] = -std::numeric_limits<float>::infinity();
    where[i] = kPaddingRow * static_cast<int32_t>(width);
  }
  const int64_t lines = kVolume ? p.output_depth * p.output_height : p.output_height;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t slice = kVolume ? line / p.output_height : 0, row = line - slice * p.output_height;
    const int64_t top = g.rows.begin[row], rows = g.rows.end[row] - top, at = line * p.output_width + first;
    const int32_t clipped = static_cast<int32_t>(top - (row * p.vertical.stride - p.vertical.pad));
    if (row >= g.filled_rows || (kVolume && slice >= g.filled_slices)) {
      for (int64_t i = 0; i < n; ++i) SetEmpty(at + i, destination, saved, indices);
      continue;
    }
    const float* from = source + top * p.input_width + begin;
    int32_t last_row = clipped + static_cast<int32_t>(rows) - 1;
    if constexpr (kVolume) {
      const VolumeRows window = g.RowsOf(slice, row);
      CoverWithVectors<LargestOfVolumeColumns>(
          end - begin, from + g.slices.begin[slice] * p.input_height * p.input_width, window,
          static_cast<int32_t>(width), largest + begin - start, where + begin - start);
      last_row += window.first - clipped + (static_cast<int32_t>(window.slices) - 1) * window.next_slice;
    } else if (rows == kRows) {
      CoverWithVectors<LargestOfColumns<kRows>>(end - begin, from, p.input_width, clipped, rows,
                                                static_cast<int32_t>(width), largest + begin - start,
                                                where + begin - start);
    } else {
      CoverWithVectors<LargestOfColumns<0>>(end - begin, from, p.input_width, clipped, rows,
                                            static_cast<int32_t>(width), largest + begin - start,
                                            where + begin - start);
    }
    last_row *= static_cast<int32_t>(width);
    for (int64_t block = 0; block < whole; block += kPoolingLanes) {
      float value[kPoolingLanes];
      int32_t position[kPoolingLanes];
      Position narrow[kPoolingLanes];
      LargestOfWindows<kWidth, kStride>(largest + block * stride, where + block * stride, width, stride, value,
                                        position);
      // Only a window of NaN alone can have left the padding as its largest: a real element, for Backward's sake.
      const int32_t* last_column = g.last_column.data() + first + block;
#pragma omp simd
      for (int64_t lane = 0; lane < kPoolingLanes; ++lane) {
        const int32_t last = last_row + last_column[lane];
        position[lane] = position[lane] < last ? position[lane] : last;
        narrow[lane] = static_cast<Position>(position[lane]);
      }
      const int64_t copied = n - block < kPoolingLanes ? n - block : kPoolingLanes;
      CopyLanes(value, copied, destination + at + block);
      if (saved) CopyLanes(narrow, copied, saved + at + block);
      for (int64_t i = 0; indices && i < copied; ++i) {
        const int64_t corner = g.Corner(slice, row, first + block + i);
        indices[at + block + i] = static_cast<float>(corner + g.OffsetOf(position[i]));
      }
    }
    for (int64_t i = std::max(g.filled_columns, first); i < first + n; ++i) {
      SetEmpty(line * p.output_width + i, destination, saved, indices);
    }
  }
}

template <typename Position>
using StripFunction = void (*)(const Geometry&, const float*, int64_t, int64_t, float*, Position*, float*);

template <typename Position>
StripFunction<Position> FindStripFunction(const PoolingProblem& p) {
  if (p.volume()) {
    if (p.horizontal.kernel == 2 && p.horizontal.stride == 2) return PoolStrip<Position, true, 0, 2, 2>;
    if (p.horizontal.kernel == 3 && p.horizontal.stride == 2) return PoolStrip<Position, true, 0, 3, 2>;
    return PoolStrip<Position, true, 0, 0, 0>;
  }
  if (p.vertical.kernel == p.horizontal.kernel) {
    if (p.horizontal.kernel == 2 && p.horizontal.stride == 2) return PoolStrip<Position, false, 2, 2, 2>;
    if (p.horizontal.kernel == 3 && p.horizontal.stride == 2) return PoolStrip<Position, false, 3, 3, 2>;
    if (p.horizontal.kernel == 3 && p.horizontal.stride == 1) return PoolStrip<Position, false, 3, 3, 1>;
  }
  return PoolStrip<Position, false, 0, 0, 0>;
}

// The winner of a window is kept as its position in the unclipped window, which fits a byte up to 256 of them.
template <typename Position>
class MaxPooling final : public PoolingKernel {
 public:
  explicit MaxPooling(const PoolingProblem& problem) : g_(problem), pool_(FindStripFunction<Position>(problem)) {
    const int64_t positions = problem.depth.kernel * problem.vertical.kernel * problem.horizontal.kernel;
    for (int64_t i = 0; i < positions; ++i) offsets_.push_back(g_.OffsetOf(i));
  }

  TensorSpec saved() const override {
    if (!g_.problem.backward) return {Shape{0}, DType::kF32};
    return {Shape{g_.problem.planes(), g_.problem.output_depth * g_.problem.output_height, g_.problem.output_width},
            sizeof(Position) == 1 ? DType::kU8 : DType::kI32};
  }

  void Forward(const void* source, void* destination, void* saved, float* indices, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    ForEachPlane(p, [&](int64_t plane) {
      const int64_t at = plane * p.output_plane();
      for (int64_t first = 0; first < p.output_width; first += g_.strip) {
        pool_(g_, static_cast<const float*>(source) + plane * p.input_plane(), first,
              std::min(g_.strip, p.output_width - first), static_cast<float*>(destination) + at,
              saved ? static_cast<Position*>(saved) + at : nullptr, indices ? indices + at : nullptr);
      }
    });
  }

  void Backward(const void*, const void* destination_gradient, const void* saved, void* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    ForEachPlane(p, [&](int64_t plane) {
      float* gradient = static_cast<float*>(source_gradient) + plane * p.input_plane();
      std::fill_n(gradient, p.input_plane(), 0.0f);
      for (int64_t line = 0; line < g_.filled_slices * p.output_height; ++line) {
        const int64_t slice = line / p.output_height, row = line % p.output_height;
        if (row >= g_.filled_rows) continue;
        const int64_t at = (plane * p.output_depth * p.output_height + line) * p.output_width;
        const Position* positions = static_cast<const Position*>(saved) + at;
        const float* from = static_cast<const float*>(destination_gradient) + at;
        const int64_t corner = g_.Corner(slice, row, 0), stride = p.horizontal.stride;
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
  } else if (problem.layout != Layout::kPlain) {
    *why_not = "takes plain images only";
  } else if (PoolingStrip(problem.horizontal) == 0 || problem.vertical.kernel >= kPaddingRow ||
             problem.depth.kernel > kPaddingRow / problem.vertical.kernel) {
    *why_not = "kernel or stride is too large";
  } else if (problem.depth.kernel * problem.vertical.kernel * problem.horizontal.kernel <= 256) {
    return std::make_unique<MaxPooling<uint8_t>>(problem);
  } else {
    return std::make_unique<MaxPooling<int32_t>>(problem);
  }
  return nullptr;
}

}  // namespace crema
