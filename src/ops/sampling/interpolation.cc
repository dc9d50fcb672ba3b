#include "ops/sampling/interpolation.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/sampling/interpolation_formulas.h"

namespace crema {

namespace {

using interpolation::Axes;
using interpolation::Axis;
using interpolation::Range;
using interpolation::Source;

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int32_t kColumns = 256;  // of the result that are worked on at a time

// What some columns of the result, side by side, are made of.
struct Columns {
  int32_t first[kColumns], second[kColumns];
  float weight[kColumns];
};

CREMA_INLINE void Locate(const Axis& axis, int32_t begin, int32_t count, Columns* to) {
#pragma omp simd
  for (int32_t i = 0; i < count; ++i) {
    const Source source = axis.At(begin + i);
    to->first[i] = source.first;
    to->second[i] = source.second;
    to->weight[i] = source.weight;
  }
}

// Rows [begin, end) of the results of all planes.
CREMA_MULTIVERSION void EnlargeRows(const Interpolation& p, const float* x, float* y, int64_t begin, int64_t end) {
  const Axes axes(p);
  Columns columns;
  for (int32_t left = 0; left < axes.columns.result; left += kColumns) {
    const int32_t count = std::min(kColumns, axes.columns.result - left);
    Locate(axes.columns, left, count, &columns);
    for (int64_t i = begin; i < end; ++i) {
      const Source source = axes.rows.At(static_cast<int32_t>(i % p.result_height));
      const float* part = x + (i / p.result_height * p.height + p.row) * p.width + p.column;
      const float *upper = part + source.first * p.width, *lower = part + source.second * p.width;
      const float below = source.weight, above = 1.0f - below;
      float* to = y + i * p.result_width + left;
#pragma omp simd
      for (int32_t c = 0; c < count; ++c) {
        const int32_t first = columns.first[c], second = columns.second[c];
        const float right = columns.weight[c], to_left = 1.0f - right;
        to[c] = above * (to_left * upper[first] + right * upper[second]) +
                below * (to_left * lower[first] + right * lower[second]);
      }
    }
  }
}

// What a row of the source gets: first the rows of the result together, then their columns.
CREMA_INLINE void GatherRow(const Interpolation& p, const Axes& axes, const Columns& columns, int32_t left,
                            int32_t count, int32_t row, const float* plane, float* to) {
  const Range readers = axes.rows.Readers(row);
  if (readers.begin >= readers.end) return;
  float sums[kColumns];
#pragma omp simd
  for (int32_t c = 0; c < count; ++c) sums[c] = 0;
  for (int32_t r = readers.begin; r < readers.end; ++r) {
    const float weight = axes.rows.At(r).Of(row);
    if (weight == 0.0f) continue;  // gradients may be infinite
    const float* dy = plane + r * p.result_width + left;
#pragma omp simd
    for (int32_t c = 0; c < count; ++c) sums[c] += weight * dy[c];
  }
  for (int32_t c = 0; c < count; ++c) {
    const float right = columns.weight[c];
    to[columns.first[c]] += right == 1.0f ? 0.0f : (1.0f - right) * sums[c];
    to[columns.second[c]] += right == 0.0f ? 0.0f : right * sums[c];
  }
}

// Rows [begin, end) of the sources of all planes.
CREMA_MULTIVERSION void GatherRows(const Interpolation& p, const float* dy, float* dx, int64_t begin, int64_t end) {
  const Axes axes(p);
  Columns columns;
  std::fill(dx + begin * p.width, dx + end * p.width, 0.0f);
  for (int32_t left = 0; left < axes.columns.result; left += kColumns) {
    const int32_t count = std::min(kColumns, axes.columns.result - left);
    Locate(axes.columns, left, count, &columns);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % p.height - p.row;
      if (row < 0 || row >= p.part_height) continue;
      GatherRow(p, axes, columns, left, count, static_cast<int32_t>(row),
                dy + i / p.height * p.result_height * p.result_width, dx + i * p.width + p.column);
    }
  }
}

int64_t RowGrain(int64_t work) { return std::max<int64_t>(1, kGrain / (work + 1)); }

}  // namespace

void InterpolationForward(const Interpolation& problem, const float* x, float* y) {
  ParallelFor(problem.planes * problem.result_height, RowGrain(problem.result_width),
              [&](int64_t begin, int64_t end) { EnlargeRows(problem, x, y, begin, end); });
}

void InterpolationBackward(const Interpolation& problem, const float* dy, float* dx) {
  const int64_t readers = 2 * problem.result_height * problem.result_width / std::max<int64_t>(1, problem.height);
  ParallelFor(problem.planes * problem.height, RowGrain(problem.width + readers),
              [&](int64_t begin, int64_t end) { GatherRows(problem, dy, dx, begin, end); });
}

}  // namespace crema
