#include "ops/losses/softmax.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/functors.h"
#include "ops/losses/label_formulas.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 8192;  // elements worth waking a thread for
constexpr int64_t kTile = 128;    // positions of one outer row that are worked on side by side
// Rows of at most so many classes are turned to lie side by side, so many at a time: within one of them vectors would
// stay empty.
constexpr int64_t kFewClasses = 31, kShortRows = 32;

// Rows [begin, end), whose classes lie next to each other.
CREMA_MULTIVERSION void ForwardRows(const ClassAxis& axis, int64_t begin, int64_t end, const float* from, float* to) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = from + row * axis.classes;
    float* y = to + row * axis.classes;
    const int64_t counted = axis.counted(row);
    float largest = x[0];
#pragma omp simd reduction(max : largest)
    for (int64_t c = 0; c < counted; ++c) largest = x[c] > largest ? x[c] : largest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < counted; ++c) {
      y[c] = formula::Exp(x[c] - largest);
      sum += y[c];
    }
    const float scale = 1.0f / sum;
#pragma omp simd
    for (int64_t c = 0; c < counted; ++c) y[c] *= scale;
    std::fill(y + counted, y + axis.classes, 0.0f);
  }
}

// Classes lie `stride` apart; `width` <= kTile neighbouring positions.
CREMA_INLINE void ForwardColumns(int64_t width, int64_t classes, int64_t stride, const float* x, float* y) {
  float largest[kTile], sum[kTile];
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    largest[i] = x[i];
    sum[i] = 0;
  }
  for (int64_t c = 1; c < classes; ++c) {
    const float* row = x + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) largest[i] = row[i] > largest[i] ? row[i] : largest[i];
  }
  for (int64_t c = 0; c < classes; ++c) {
    const float* from = x + c * stride;
    float* to = y + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      to[i] = formula::Exp(from[i] - largest[i]);
      sum[i] += to[i];
    }
  }
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) sum[i] = 1.0f / sum[i];
  for (int64_t c = 0; c < classes; ++c) {
    float* to = y + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) to[i] *= sum[i];
  }
}

CREMA_MULTIVERSION void ForwardTile(int64_t width, int64_t classes, int64_t stride, const float* x, float* y) {
  ForwardColumns(width, classes, stride, x, y);
}

CREMA_MULTIVERSION void ForwardShortRows(int64_t rows, int64_t classes, const float* from, float* to) {
  float tile[kFewClasses * kShortRows];
  for (int64_t first = 0; first < rows; first += kShortRows, from += kShortRows * classes, to += kShortRows * classes) {
    const int64_t count = std::min(kShortRows, rows - first);
    if (count < kShortRows) std::fill_n(tile, classes * kShortRows, 0.0f);
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t c = 0; c < classes; ++c) tile[c * kShortRows + row] = from[row * classes + c];
    }
    ForwardColumns(kShortRows, classes, kShortRows, tile, tile);
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t c = 0; c < classes; ++c) to[row * classes + c] = tile[c * kShortRows + row];
    }
  }
}

CREMA_MULTIVERSION void BackwardRows(int64_t rows, int64_t classes, const float* y, const float* dy, float* dx) {
  for (int64_t row = 0; row < rows; ++row, y += classes, dy += classes, dx += classes) {
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t c = 0; c < classes; ++c) dot += y[c] * dy[c];
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c) dx[c] = y[c] * (dy[c] - dot);
  }
}

CREMA_MULTIVERSION void BackwardTile(int64_t width, int64_t classes, int64_t stride, const float* y, const float* dy,
                                     float* dx) {
  float dot[kTile];
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) dot[i] = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const float *a = y + c * stride, *b = dy + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) dot[i] += a[i] * b[i];
  }
  for (int64_t c = 0; c < classes; ++c) {
    const float *a = y + c * stride, *b = dy + c * stride;
    float* to = dx + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) to[i] = a[i] * (b[i] - dot[i]);
  }
}

// Calls body(offset, width) for every tile of positions; element (outer, class 0, inner) of the tile is at `offset`.
template <typename Body>
void ForEachTile(const ClassAxis& axis, const Body& body) {
  const int64_t tiles = (axis.inner + kTile - 1) / kTile;
  ParallelFor(axis.outer * tiles, std::max<int64_t>(1, kGrain / (axis.classes * std::min(axis.inner, kTile))),
              [&](int64_t begin, int64_t end) {
                for (int64_t t = begin; t < end; ++t) {
                  const int64_t inner = t % tiles * kTile;
                  body(t / tiles * axis.classes * axis.inner + inner, std::min(kTile, axis.inner - inner));
                }
              });
}

int64_t RowGrain(const ClassAxis& axis) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, axis.classes * axis.inner));
}

}  // namespace

void SoftmaxForward(const ClassAxis& axis, const float* x, float* y) {
  if (axis.positions() * axis.classes == 0) return;
  if (axis.inner == 1 && axis.classes <= kFewClasses && axis.causal == 0) {
    ParallelFor(axis.outer, RowGrain(axis), [&](int64_t begin, int64_t end) {
      ForwardShortRows(end - begin, axis.classes, x + begin * axis.classes, y + begin * axis.classes);
    });
  } else if (axis.inner == 1) {
    ParallelFor(axis.outer, RowGrain(axis), [&](int64_t begin, int64_t end) { ForwardRows(axis, begin, end, x, y); });
  } else {
    ForEachTile(axis, [&](int64_t offset, int64_t width) {
      ForwardTile(width, axis.classes, axis.inner, x + offset, y + offset);
    });
  }
}

void SoftmaxBackward(const ClassAxis& axis, const float* y, const float* dy, float* dx) {
  if (axis.positions() * axis.classes == 0) return;
  if (axis.inner == 1) {
    ParallelFor(axis.outer, RowGrain(axis), [&](int64_t begin, int64_t end) {
      const int64_t offset = begin * axis.classes;
      BackwardRows(end - begin, axis.classes, y + offset, dy + offset, dx + offset);
    });
  } else {
    ForEachTile(axis, [&](int64_t offset, int64_t width) {
      BackwardTile(width, axis.classes, axis.inner, y + offset, dy + offset, dx + offset);
    });
  }
}

int64_t FindBadLabel(const LabelRule& rule, int64_t classes, int64_t count, const float* label) {
  for (int64_t i = 0; i < count; ++i) {
    if (labels::IsBad(rule, classes, label[i])) return i;
  }
  return -1;
}

double WeighLabels(const LabelRule& rule, const float* class_weight, int64_t count, const float* label) {
  if (!rule.has_ignore && !class_weight) return static_cast<double>(count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!labels::IsIgnored(rule, label[i])) sum += static_cast<double>(labels::Weight(class_weight, label[i]));
  }
  return sum;
}

}  // namespace crema
