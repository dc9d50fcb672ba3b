#include "ops/arrays/axis_permutation.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/packs.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int64_t kPanel = 256;    // elements along the longer edge of one item of work
constexpr int64_t kLine = 16;      // floats of a cache line

// A matrix of rows x columns numbers becomes one of columns x rows; strides are those of the rows of each.
template <typename From, typename To>
struct Transposition {
  const From* from;
  To* to;
  int64_t rows, columns;
  int64_t from_stride, to_stride;
};

typedef float Four __attribute__((vector_size(16)));
typedef uint32_t FourWords __attribute__((vector_size(16)));
typedef uint16_t FourHalves __attribute__((vector_size(8)));

// Through float: a loop over it is vectorised for either type.
template <typename To, typename From>
CREMA_INLINE To Convert(From value) {
  return To(static_cast<float>(value));
}

// Which of the eight elements of a and b make the result.
template <int kA, int kB, int kC, int kD>
CREMA_INLINE Four Pick(Four a, Four b) {
  Four picked;
  PickLanes<kA, kB, kC, kD>(a, b, &picked);
  return picked;
}

CREMA_INLINE Four Load(const float* from) {
  Four values;
  __builtin_memcpy(&values, from, sizeof(values));
  return values;
}

CREMA_INLINE Four Load(const BFloat16* from) {
  FourHalves halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
  return (Four)(__builtin_convertvector(halves, FourWords) << 16);
}

CREMA_INLINE void Store(Four values, float* to) { __builtin_memcpy(to, &values, sizeof(values)); }

// Rounds as BFloat16 does.
CREMA_INLINE void Store(Four values, BFloat16* to) {
  const FourWords words = (FourWords)values, rounded = words + 0x7fffu + ((words >> 16) & 1u);
  const FourWords is_nan = (FourWords)((words & 0x7fffffffu) > 0x7f800000u);
  const FourWords chosen = (is_nan & (words | 0x400000u)) | (~is_nan & rounded);
  const FourHalves halves = __builtin_convertvector(chosen >> 16, FourHalves);
  __builtin_memcpy(to, &halves, sizeof(halves));
}

template <typename From, typename To>
CREMA_INLINE void TransposeFour(const From* from, int64_t from_stride, To* to, int64_t to_stride) {
  const Four a = Load(from), b = Load(from + from_stride), c = Load(from + 2 * from_stride),
             d = Load(from + 3 * from_stride);
  const Four ab_low = Pick<0, 4, 1, 5>(a, b), ab_high = Pick<2, 6, 3, 7>(a, b);
  const Four cd_low = Pick<0, 4, 1, 5>(c, d), cd_high = Pick<2, 6, 3, 7>(c, d);
  Store(Pick<0, 1, 4, 5>(ab_low, cd_low), to);
  Store(Pick<2, 3, 6, 7>(ab_low, cd_low), to + to_stride);
  Store(Pick<0, 1, 4, 5>(ab_high, cd_high), to + 2 * to_stride);
  Store(Pick<2, 3, 6, 7>(ab_high, cd_high), to + 3 * to_stride);
}

// kLine rows and columns: every line of memory that is read or written is used up before the next block.
template <typename From, typename To>
CREMA_INLINE void TransposeLines(const From* from, int64_t from_stride, To* to, int64_t to_stride) {
  for (int64_t column = 0; column < kLine; column += 4) {
    for (int64_t row = 0; row < kLine; row += 4) {
      TransposeFour(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
    }
  }
}

template <typename From, typename To>
CREMA_INLINE void TransposeRest(const From* from, int64_t from_stride, int64_t rows, int64_t columns, To* to,
                                int64_t to_stride) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t column = 0; column < whole_columns; column += 4) {
    for (int64_t row = 0; row < whole_rows; row += 4) {
      TransposeFour(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
    }
    for (int64_t j = column; j < column + 4; ++j) {
      for (int64_t row = whole_rows; row < rows; ++row)
        to[j * to_stride + row] = Convert<To>(from[row * from_stride + j]);
    }
  }
  for (int64_t j = whole_columns; j < columns; ++j) {
    for (int64_t row = 0; row < rows; ++row) to[j * to_stride + row] = Convert<To>(from[row * from_stride + j]);
  }
}

// The block at (row, column), clipped. The inner loops go `down` the rows or along the columns.
template <bool kDown, typename From, typename To>
CREMA_INLINE void TransposeBlock(const Transposition<From, To>& t, int64_t row, int64_t end_row, int64_t column,
                                 int64_t end_column) {
  // Of this many streams, processors do not foresee all.
  constexpr int64_t kAhead = 2 * kLine;
  const From* from = t.from + row * t.from_stride + column;
  To* to = t.to + column * t.to_stride + row;
  if (end_row - row >= kLine && end_column - column >= kLine) {
    for (int64_t i = 0; i < kLine; ++i) {
      __builtin_prefetch(from + i * t.from_stride + kAhead * (kDown ? t.from_stride : 1), 0);
      __builtin_prefetch(to + i * t.to_stride + kAhead * (kDown ? 1 : t.to_stride), 1);
    }
    TransposeLines(from, t.from_stride, to, t.to_stride);
  } else {
    TransposeRest(from, t.from_stride, end_row - row < kLine ? end_row - row : kLine,
                  end_column - column < kLine ? end_column - column : kLine, to, t.to_stride);
  }
}

// A piece of the longer edge, along which memory is walked in the inner loop.
template <typename From, typename To>
CREMA_MULTIVERSION void TransposeColumns(const Transposition<From, To>& t, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < t.rows; row += kLine) {
    for (int64_t column = begin; column < end; column += kLine) TransposeBlock<false>(t, row, t.rows, column, end);
  }
}

template <typename From, typename To>
CREMA_MULTIVERSION void TransposeRows(const Transposition<From, To>& t, int64_t begin, int64_t end) {
  for (int64_t column = 0; column < t.columns; column += kLine) {
    for (int64_t row = begin; row < end; row += kLine) TransposeBlock<true>(t, row, end, column, t.columns);
  }
}

// Few rows, one after the other: loops that compilers turn into shuffles of whole vectors.
template <int kRows, typename From, typename To>
CREMA_MULTIVERSION void InterleaveRows(const Transposition<From, To>& t, int64_t begin, int64_t end) {
  const From* from = t.from;
  To* to = t.to;
  const int64_t stride = t.from_stride;
#pragma omp simd
  for (int64_t column = begin; column < end; ++column) {
    for (int row = 0; row < kRows; ++row) to[column * kRows + row] = Convert<To>(from[row * stride + column]);
  }
}

template <int kColumns, typename From, typename To>
CREMA_MULTIVERSION void SeparateColumns(const Transposition<From, To>& t, int64_t begin, int64_t end) {
  const From* from = t.from;
  To* to = t.to;
  const int64_t stride = t.to_stride;
#pragma omp simd
  for (int64_t row = begin; row < end; ++row) {
    for (int column = 0; column < kColumns; ++column)
      to[column * stride + row] = Convert<To>(from[row * kColumns + column]);
  }
}

// One of the pieces that the matrix is cut into along its longer edge.
template <typename From, typename To>
void TransposePiece(const Transposition<From, To>& t, int64_t begin, int64_t end) {
  if (t.rows <= t.columns) {
    if (t.rows == 2 && t.to_stride == 2) return InterleaveRows<2>(t, begin, end);
    if (t.rows == 3 && t.to_stride == 3) return InterleaveRows<3>(t, begin, end);
    return TransposeColumns(t, begin, end);
  }
  if (t.columns == 2 && t.from_stride == 2) return SeparateColumns<2>(t, begin, end);
  if (t.columns == 3 && t.from_stride == 3) return SeparateColumns<3>(t, begin, end);
  TransposeRows(t, begin, end);
}

template <typename From, typename To>
CREMA_MULTIVERSION void ConvertRange(int64_t n, const From* from, To* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = Convert<To>(from[i]);
}

template <typename From, typename To>
void CopyRow(int64_t n, const From* from, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(To));
  } else {
    ConvertRange(n, from, to);
  }
}

// Goes from place to place of the outer axes.
class Places {
 public:
  Places(const AxisPermutation& permutation, int64_t first) : permutation_(permutation) {
    for (int axis = 1; axis < permutation.axes(); ++axis) {
      if (!permutation.is_outer(axis)) continue;
      at_[axis] = first % permutation.extent(axis);
      first /= permutation.extent(axis);
      source_ += at_[axis] * permutation.source_stride(axis);
      result_ += at_[axis] * permutation.result_stride(axis);
    }
  }
  void Next() {
    for (int axis = 1; axis < permutation_.axes(); ++axis) {
      if (!permutation_.is_outer(axis)) continue;
      source_ += permutation_.source_stride(axis);
      result_ += permutation_.result_stride(axis);
      if (++at_[axis] < permutation_.extent(axis)) return;
      at_[axis] = 0;
      source_ -= permutation_.extent(axis) * permutation_.source_stride(axis);
      result_ -= permutation_.extent(axis) * permutation_.result_stride(axis);
    }
  }
  int64_t source() const { return source_; }
  int64_t result() const { return result_; }

 private:
  const AxisPermutation& permutation_;
  int64_t at_[Shape::kMaxAxes] = {}, source_ = 0, result_ = 0;
};

template <typename From, typename To>
void Permute(const AxisPermutation& p, const Tensor& given, const Tensor& wanted) {
  const From* from = static_cast<const From*>(given.raw());
  To* to = static_cast<To*>(wanted.raw());
  const int64_t rows = p.rows(), columns = p.columns(), longer = std::max(rows, columns);
  const int64_t edge = p.transposes() ? kPanel : kGrain, pieces = (longer + edge - 1) / edge;
  const int64_t items = std::max<int64_t>(1, kGrain * pieces / (rows * columns));
  ParallelFor(p.outer() * pieces, items, [&](int64_t begin, int64_t end) {
    Places place(p, begin / pieces);
    for (int64_t i = begin, piece = begin % pieces; i < end; ++i) {
      const From* source = from + place.source();
      To* result = to + place.result();
      const int64_t first = piece * edge, last = std::min(longer, first + edge);
      if (p.transposes()) {
        TransposePiece(Transposition<From, To>{source, result, rows, columns, p.source_stride(), p.result_stride()},
                       first, last);
      } else {
        CopyRow(last - first, source + first, result + first);
      }
      if (++piece < pieces) continue;
      piece = 0;
      place.Next();
    }
  });
}

bool IsNumber(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

}  // namespace

AxisPermutation::AxisPermutation(std::span<const int64_t> extents, std::span<const int> order) {
  CREMA_CHECK(order.size() == extents.size() && extents.size() <= Shape::kMaxAxes) << "an order of other axes";
  int64_t strides[Shape::kMaxAxes], stride = 1;
  for (size_t i = extents.size(); i-- > 0; stride *= extents[i]) strides[i] = stride;
  int64_t result_stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t extent = extents[order[i]], source_stride = strides[order[i]];
    if (extent != 1) {
      const int last = axes_ - 1;
      if (axes_ > 0 && source_stride == source_strides_[last] * extents_[last]) {
        extents_[last] *= extent;
      } else {
        extents_[axes_] = extent;
        source_strides_[axes_] = source_stride;
        result_strides_[axes_++] = result_stride;
      }
    }
    result_stride *= extent;
  }
  for (int axis = 0; axis < axes_; ++axis) {
    if (source_strides_[axis] == 1) transposed_ = axis;
  }
  outer_ = result_stride;
  if (axes_ > 0) {
    columns_ = extents_[transposed_];
    if (transposed_ > 0) rows_ = extents_[0];
    outer_ = rows_ * columns_ == 0 ? 0 : result_stride / (rows_ * columns_);
  }
}

void PermuteAxes(const AxisPermutation& permutation, const Tensor& from, const Tensor& to) {
  CREMA_CHECK(IsNumber(from.dtype()) && IsNumber(to.dtype()))
      << "cannot move " << Name(from.dtype()) << " to " << Name(to.dtype());
  if (permutation.count() == 0) return;
  if (from.dtype() == DType::kF32) {
    to.dtype() == DType::kF32 ? Permute<float, float>(permutation, from, to)
                              : Permute<float, BFloat16>(permutation, from, to);
  } else {
    to.dtype() == DType::kF32 ? Permute<BFloat16, float>(permutation, from, to)
                              : Permute<BFloat16, BFloat16>(permutation, from, to);
  }
}

void TransposeMatrix(int64_t rows, int64_t columns, const float* from, float* to) {
  const int64_t extents[] = {rows, columns};
  constexpr int kOrder[] = {1, 0};
  PermuteAxes(AxisPermutation(extents, kOrder), Tensor(const_cast<float*>(from), {Shape{rows, columns}}),
              Tensor(to, {Shape{columns, rows}}));
}

void ReverseAxis(const AxisReversal& reversal, const float* x, float* y) {
  const int64_t extent = reversal.extent, inner = reversal.inner;
  ParallelFor(reversal.outer * extent, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, inner)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t from = i - i % extent + extent - 1 - i % extent;
                  std::copy(x + from * inner, x + (from + 1) * inner, y + i * inner);
                }
              });
}

}  // namespace crema
