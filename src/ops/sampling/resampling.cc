#include "ops/sampling/resampling.h"

#include <algorithm>
#include <cmath>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/sampling/resampling_formulas.h"

namespace crema {

namespace {

using resampling::Axis;
using resampling::Filter;
using resampling::Range;
using resampling::ReadersOf;
using resampling::Table;
using resampling::Tables;

constexpr int64_t kGrain = 16384;  // products worth waking a thread for
constexpr int64_t kColumns = 256;  // of the result that are worked on at a time
constexpr int64_t kTaps = 512;     // and of the columns that each of them is made of
constexpr int64_t kSpan = 4096;    // columns of the source that they may reach over

Axis WithTaps(Filter filter, Axis axis) {
  const double reach = 2 * resampling::RadiusOf(filter) * axis.width;
  axis.taps = filter == Filter::kNearest ? 1 : std::min(axis.extent, static_cast<int64_t>(std::ceil(reach)));
  return axis;
}

Tables FillTables(const Resampling& p, std::byte* workspace) {
  const Tables tables(p, workspace);
  for (int64_t i = 0; i < p.rows.result; ++i) tables.rows.Fill(p.rows, p.filter, i);
  for (int64_t i = 0; i < p.columns.result; ++i) tables.columns.Fill(p.columns, p.filter, i);
  return tables;
}

// Some columns of a row of the result.
struct Part {
  int64_t row, left, count;
};

// What has no weight may be infinite or no number.
CREMA_INLINE void AddTap(int64_t n, const float* weights, const int32_t* first, const float* x, float* sums) {
#pragma omp simd
  for (int64_t c = 0; c < n; ++c) sums[c] += weights[c] == 0.0f ? 0.0f : weights[c] * x[first[c]];
}

// Rows of the source together, elements [0, n) of each.
CREMA_INLINE void MeanOfRows(const Resampling& p, const Table& rows, int64_t row, int64_t n, const float* x,
                             float* mean) {
#pragma omp simd
  for (int64_t c = 0; c < n; ++c) mean[c] = 0.0f;
  for (int64_t j = 0; j < p.rows.taps; ++j) {
    const float weight = rows.weights[j * p.rows.result + row];
    if (weight == 0) continue;
    const float* const from = x + (rows.first[row] + j) * p.columns.extent;
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) mean[c] += weight * from[c];
  }
}

// First the rows of the source together, then their columns.
CREMA_MULTIVERSION void MakePart(const Resampling& p, const Tables& tables, const Part& part, const float* plane,
                                 float* y) {
  const int32_t* const first = tables.columns.first + part.left;
  float sums[kColumns] = {}, mean[kSpan];
  for (int64_t begin = 0; begin < p.columns.taps; begin += kTaps) {
    const int64_t end = std::min(begin + kTaps, p.columns.taps), from = first[0] + begin;
    MeanOfRows(p, tables.rows, part.row, first[part.count - 1] + end - from, plane + from, mean);
    for (int64_t i = begin; i < end; ++i) {
      AddTap(part.count, tables.columns.weights + i * p.columns.result + part.left, first, mean - from + i, sums);
    }
  }
#pragma omp simd
  for (int64_t c = 0; c < part.count; ++c) y[c] = sums[c];
}

// What one element counts for those of the result; NaNs add their weights elsewhere.
CREMA_INLINE void AddKnownTap(int64_t n, float weight, const float* weights, const int32_t* first, const float* x,
                              float* sums, float* known, float* unknown) {
#pragma omp simd
  for (int64_t c = 0; c < n; ++c) {
    const float value = x[first[c]], share = weight * weights[c];
    const bool is_known = value == value;
    sums[c] += is_known ? share * value : 0.0f;
    known[c] += is_known ? share : 0.0f;
    unknown[c] += is_known ? 0.0f : share;
  }
}

CREMA_MULTIVERSION void MakeKnownPart(const Resampling& p, const Tables& tables, const Part& part, const float* plane,
                                      float* y) {
  float sums[kColumns] = {}, known[kColumns] = {}, unknown[kColumns] = {};
  for (int64_t j = 0; j < p.rows.taps; ++j) {
    const float weight = tables.rows.weights[j * p.rows.result + part.row];
    if (weight == 0) continue;
    const float* const row = plane + (tables.rows.first[part.row] + j) * p.columns.extent;
    for (int64_t i = 0; i < p.columns.taps; ++i) {
      AddKnownTap(part.count, weight, tables.columns.weights + i * p.columns.result + part.left,
                  tables.columns.first + part.left, row + i, sums, known, unknown);
    }
  }
#pragma omp simd
  for (int64_t c = 0; c < part.count; ++c) y[c] = resampling::MeanOfKnown(sums[c], known[c], unknown[c]);
}

// Elements of a row of the result from `left` on, as many as are worked on at a time.
Part PartAt(const Resampling& p, const Table& columns, int64_t row, int64_t left) {
  int64_t count = std::min(kColumns, p.columns.result - left);
  while (columns.first[left + count - 1] - columns.first[left] > kSpan - kTaps) count = (count + 1) / 2;
  return {row, left, count};
}

// Rows of the result that read a row of the source, together.
CREMA_MULTIVERSION void SumReaders(const Resampling& p, const Table& rows, int64_t row, const Part& part,
                                   const float* plane, float* sums) {
  std::fill_n(sums, part.count, 0.0f);
  const Range readers = ReadersOf(p.rows, p.filter, row);
  for (int64_t r = readers.begin; r < readers.end; ++r) {
    const float weight = rows.Of(p.rows, r, row);
    if (weight == 0) continue;
    const float* const dy = plane + r * p.columns.result + part.left;
#pragma omp simd
    for (int64_t c = 0; c < part.count; ++c) sums[c] += weight * dy[c];
  }
}

void GatherRow(const Resampling& p, const Tables& tables, int64_t row, const float* plane, float* dx) {
  float sums[kColumns];
  std::fill_n(dx, p.columns.extent, 0.0f);
  for (int64_t left = 0; left < p.columns.result; left += kColumns) {
    const Part part = {row, left, std::min(kColumns, p.columns.result - left)};
    SumReaders(p, tables.rows, row, part, plane, sums);
    for (int64_t i = 0; i < p.columns.taps; ++i) {
      const float* const weights = tables.columns.weights + i * p.columns.result + left;
      for (int64_t c = 0; c < part.count; ++c) {
        dx[tables.columns.first[left + c] + i] += weights[c] == 0.0f ? 0.0f : weights[c] * sums[c];
      }
    }
  }
}

int64_t RowGrain(int64_t work) { return std::max<int64_t>(1, kGrain / (work + 1)); }

}  // namespace

Resampling::Axis ResamplingBetweenEdges(Resampling::Filter filter, bool widens, int64_t extent, int64_t result) {
  Axis axis = {.extent = extent, .result = result};
  axis.scale = static_cast<double>(extent) / static_cast<double>(result);
  axis.shift = (axis.scale - 1) / 2;
  if (widens) axis.width = std::max(1.0, axis.scale);
  return WithTaps(filter, axis);
}

Resampling::Axis ResamplingBetweenCorners(Resampling::Filter filter, int64_t extent, int64_t result) {
  Axis axis = {.extent = extent, .result = result};
  if (result > 1) axis.scale = static_cast<double>(extent - 1) / static_cast<double>(result - 1);
  axis.width = axis.scale;
  return WithTaps(filter, axis);
}

size_t ResamplingWorkspace(const Resampling& problem) { return resampling::WorkspaceOf(problem); }

void ResamplingForward(const Resampling& problem, const float* x, float* y, std::byte* workspace) {
  const Resampling& p = problem;
  const Tables tables = FillTables(p, workspace);
  ParallelFor(p.planes * p.rows.result, RowGrain(p.columns.result * p.columns.taps * p.rows.taps),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) {
                  const float* const plane = x + n / p.rows.result * p.plane();
                  for (int64_t left = 0; left < p.columns.result;) {
                    const Part part = PartAt(p, tables.columns, n % p.rows.result, left);
                    float* const to = y + n * p.columns.result + left;
                    p.skips_nan ? MakeKnownPart(p, tables, part, plane, to) : MakePart(p, tables, part, plane, to);
                    left += part.count;
                  }
                }
              });
}

void ResamplingBackward(const Resampling& problem, const float* dy, float* dx, std::byte* workspace) {
  const Resampling& p = problem;
  const Tables tables = FillTables(p, workspace);
  const int64_t readers = p.rows.taps * p.rows.result / std::max<int64_t>(1, p.rows.extent) + 1;
  ParallelFor(p.planes * p.rows.extent, RowGrain(p.columns.result * (p.columns.taps + readers)),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) {
                  GatherRow(p, tables, n % p.rows.extent, dy + n / p.rows.extent * p.result_plane(),
                            dx + n * p.columns.extent);
                }
              });
}

}  // namespace crema
