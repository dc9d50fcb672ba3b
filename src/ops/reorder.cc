#include "ops/reorder.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int64_t kPanel = 256;    // elements along the longer edge of one item of work
constexpr int64_t kLine = 16;      // floats of a cache line

// A matrix of rows x columns floats becomes one of columns x rows.
struct Transposition {
  const float* from;
  float* to;
  int64_t rows, columns;
};

typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourIndices __attribute__((vector_size(16)));

// Which of the eight elements of a and b make the result.
template <int kA, int kB, int kC, int kD>
CREMA_INLINE Four Pick(Four a, Four b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, kA, kB, kC, kD);
#else
  return __builtin_shuffle(a, b, FourIndices{kA, kB, kC, kD});
#endif
}

CREMA_INLINE Four Load(const float* from) {
  Four values;
  __builtin_memcpy(&values, from, sizeof(values));
  return values;
}

CREMA_INLINE void Store(Four values, float* to) { __builtin_memcpy(to, &values, sizeof(values)); }

CREMA_INLINE void TransposeFour(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
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
CREMA_INLINE void TransposeLines(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  for (int64_t column = 0; column < kLine; column += 4) {
    for (int64_t row = 0; row < kLine; row += 4) {
      TransposeFour(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
    }
  }
}

CREMA_INLINE void TransposeRest(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                                int64_t to_stride) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t column = 0; column < whole_columns; column += 4) {
    for (int64_t row = 0; row < whole_rows; row += 4) {
      TransposeFour(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
    }
    for (int64_t j = column; j < column + 4; ++j) {
      for (int64_t row = whole_rows; row < rows; ++row) to[j * to_stride + row] = from[row * from_stride + j];
    }
  }
  for (int64_t j = whole_columns; j < columns; ++j) {
    for (int64_t row = 0; row < rows; ++row) to[j * to_stride + row] = from[row * from_stride + j];
  }
}

// The block at (row, column), clipped. The inner loops go `down` the rows or along the columns.
template <bool kDown>
CREMA_INLINE void TransposeBlock(const Transposition& t, int64_t row, int64_t end_row, int64_t column,
                                 int64_t end_column) {
  // Of this many streams, processors do not foresee all.
  constexpr int64_t kAhead = 2 * kLine;
  const float* from = t.from + row * t.columns + column;
  float* to = t.to + column * t.rows + row;
  if (end_row - row >= kLine && end_column - column >= kLine) {
    for (int64_t i = 0; i < kLine; ++i) {
      __builtin_prefetch(from + i * t.columns + kAhead * (kDown ? t.columns : 1), 0);
      __builtin_prefetch(to + i * t.rows + kAhead * (kDown ? 1 : t.rows), 1);
    }
    TransposeLines(from, t.columns, to, t.rows);
  } else {
    TransposeRest(from, t.columns, end_row - row < kLine ? end_row - row : kLine,
                  end_column - column < kLine ? end_column - column : kLine, to, t.rows);
  }
}

// A piece of the longer edge, along which memory is walked in the inner loop.
CREMA_MULTIVERSION void TransposeColumns(const Transposition& t, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < t.rows; row += kLine) {
    for (int64_t column = begin; column < end; column += kLine) TransposeBlock<false>(t, row, t.rows, column, end);
  }
}

CREMA_MULTIVERSION void TransposeRows(const Transposition& t, int64_t begin, int64_t end) {
  for (int64_t column = 0; column < t.columns; column += kLine) {
    for (int64_t row = begin; row < end; row += kLine) TransposeBlock<true>(t, row, end, column, t.columns);
  }
}

// Few rows: loops that compilers turn into shuffles of whole vectors.
template <int kRows>
CREMA_MULTIVERSION void InterleaveRows(const Transposition& t, int64_t begin, int64_t end) {
  const float* from = t.from;
  float* to = t.to;
  const int64_t columns = t.columns;
#pragma omp simd
  for (int64_t column = begin; column < end; ++column) {
    for (int row = 0; row < kRows; ++row) to[column * kRows + row] = from[row * columns + column];
  }
}

template <int kColumns>
CREMA_MULTIVERSION void SeparateColumns(const Transposition& t, int64_t begin, int64_t end) {
  const float* from = t.from;
  float* to = t.to;
  const int64_t rows = t.rows;
#pragma omp simd
  for (int64_t row = begin; row < end; ++row) {
    for (int column = 0; column < kColumns; ++column) to[column * rows + row] = from[row * kColumns + column];
  }
}

// One of the pieces that `t` is cut into along its longer edge.
void TransposePiece(const Transposition& t, int64_t begin, int64_t end) {
  if (t.rows <= t.columns) {
    if (t.rows == 2) return InterleaveRows<2>(t, begin, end);
    if (t.rows == 3) return InterleaveRows<3>(t, begin, end);
    return TransposeColumns(t, begin, end);
  }
  if (t.columns == 2) return SeparateColumns<2>(t, begin, end);
  if (t.columns == 3) return SeparateColumns<3>(t, begin, end);
  TransposeRows(t, begin, end);
}

void Transpose(int64_t batch, int64_t rows, int64_t columns, const float* from, float* to) {
  const int64_t longer = std::max(rows, columns), pieces = (longer + kPanel - 1) / kPanel;
  const int64_t items = std::max<int64_t>(1, kGrain / (rows * columns / pieces));
  ParallelFor(batch * pieces, items, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / pieces * rows * columns, piece = i % pieces;
      TransposePiece({from + image, to + image, rows, columns}, piece * kPanel, std::min(longer, (piece + 1) * kPanel));
    }
  });
}

}  // namespace

void ReorderImage(const Tensor& from, const Tensor& to) {
  const Shape& shape = from.shape();
  CREMA_CHECK(shape == to.shape() && shape.axes() >= 3 && shape.axes() <= 5)
      << "cannot reorder " << shape.ToString() << " to " << to.shape().ToString();
  CREMA_CHECK(from.dtype() == DType::kF32 && to.dtype() == DType::kF32) << "reorders f32 only";
  const int64_t batch = shape[0], channels = shape[1], pixels = shape.count(2);
  if (shape.count() == 0) return;
  if (from.layout() == to.layout() || channels == 1 || pixels == 1) {
    ParallelFor(shape.count(), kGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(to.f32() + begin, from.f32() + begin, static_cast<size_t>(end - begin) * sizeof(float));
    });
  } else if (to.layout() == Layout::kChannelsLast) {
    Transpose(batch, channels, pixels, from.f32(), to.f32());
  } else {
    Transpose(batch, pixels, channels, from.f32(), to.f32());
  }
}

}  // namespace crema
