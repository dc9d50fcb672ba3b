#include "ops/sampling/roi_align.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/sampling/roi_align_formulas.h"

namespace crema {

namespace {

using roi_align::Axis;
using roi_align::Point;
using roi_align::Range;
using roi_align::Region;

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int32_t kPoints = 128;   // side by side that are worked on at a time
constexpr int32_t kColumns = 256;  // between which they lie, likewise

// Some points that lie side by side, in all rows of a region. Columns are counted from `first` on.
struct Columns {
  int32_t count = 0, first = 0, width = 0;
  int32_t low[kPoints], high[kPoints], cell[kPoints];
  float of_low[kPoints], of_high[kPoints];

  Columns(const Axis& axis, int32_t begin) : first(axis.At(begin).low) {
    for (int32_t i = begin; i < axis.inside.end && count < kPoints; ++i) {
      const Point point = axis.At(i);
      if (count > 0 && point.high - first >= kColumns) break;
      low[count] = point.low - first;
      high[count] = point.high - first;
      of_low[count] = point.of_low;
      of_high[count] = point.of_high;
      cell[count] = i / axis.points;
      width = high[count] + 1;
      ++count;
    }
  }
};

// Adds those points of one plane to the sums of the cells.
CREMA_MULTIVERSION void AddPoints(const RoiPoolingProblem& p, const Axis& rows, const Columns& columns,
                                  const float* plane, float* cells) {
  float sums[kPoints];
  for (int64_t row = 0; row < p.pooled_height; ++row) {
    const Range range = rows.Cell(row);
    if (range.empty()) continue;
    std::fill_n(sums, columns.count, 0.0f);
    for (int32_t i = range.begin; i < range.end; ++i) {
      const Point down = rows.At(i);
      const float* const upper = plane + down.low * p.width + columns.first;
      const float* const lower = plane + down.high * p.width + columns.first;
#pragma omp simd
      for (int32_t k = 0; k < columns.count; ++k) {
        const int32_t low = columns.low[k], high = columns.high[k];
        const float above = columns.of_low[k] * upper[low] + columns.of_high[k] * upper[high];
        const float below = columns.of_low[k] * lower[low] + columns.of_high[k] * lower[high];
        sums[k] += down.of_low * above + down.of_high * below;
      }
    }
    float* const to = cells + row * p.pooled_width;
    for (int32_t k = 0; k < columns.count; ++k) to[columns.cell[k]] += sums[k];
  }
}

// Gives what the cells get, times `share`, to the elements around those points.
CREMA_MULTIVERSION void SpreadPoints(const RoiPoolingProblem& p, const Axis& rows, const Columns& columns, float share,
                                     const float* cells, float* plane) {
  float across[kColumns];
  for (int64_t row = 0; row < p.pooled_height; ++row) {
    const Range range = rows.Cell(row);
    if (range.empty()) continue;
    std::fill_n(across, columns.width, 0.0f);
    for (int32_t k = 0; k < columns.count; ++k) {
      const float value = share * cells[row * p.pooled_width + columns.cell[k]];
      across[columns.low[k]] += columns.of_low[k] * value;
      across[columns.high[k]] += columns.of_high[k] * value;
    }
    for (int32_t i = range.begin; i < range.end; ++i) {
      const Point down = rows.At(i);
      float* const upper = plane + down.low * p.width + columns.first;
      float* const lower = plane + down.high * p.width + columns.first;
#pragma omp simd
      for (int32_t c = 0; c < columns.width; ++c) upper[c] += down.of_low * across[c];
#pragma omp simd
      for (int32_t c = 0; c < columns.width; ++c) lower[c] += down.of_high * across[c];
    }
  }
}

// Calls run(columns) for all points of the region.
template <typename Run>
void ForEachColumns(const Region& region, const Run& run) {
  if (region.rows.inside.empty()) return;
  for (int32_t i = region.columns.inside.begin; i < region.columns.inside.end;) {
    const Columns columns(region.columns, i);
    run(columns);
    i += columns.count;
  }
}

// The work on a region of one plane depends on it; as much as for an image at most.
int64_t WorkOf(const RoiPoolingProblem& p) {
  return std::min(p.height * p.width, 16 * p.pooled_height * p.pooled_width) + 1;
}

}  // namespace

void RoiAlignForward(const RoiAlignProblem& problem, const float* x, const float* regions, float* y) {
  const RoiPoolingProblem& p = problem.grid;
  if (p.outputs() == 0) return;
  const int64_t plane = p.height * p.width, cells = p.pooled_height * p.pooled_width;
  ParallelFor(p.regions * p.channels, std::max<int64_t>(1, kGrain / WorkOf(p)), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t number = begin / p.channels, last = std::min(end, (number + 1) * p.channels);
      const Region region(problem, regions + number * kRegionNumbers);
      const float* const image = x + region.image * p.channels * plane;
      std::fill_n(y + begin * cells, (last - begin) * cells, 0.0f);
      ForEachColumns(region, [&](const Columns& columns) {
        for (int64_t i = begin; i < last; ++i) {
          AddPoints(p, region.rows, columns, image + i % p.channels * plane, y + i * cells);
        }
      });
      const float share = region.share();
      for (int64_t i = begin * cells; i < last * cells; ++i) y[i] *= share;
      begin = last;
    }
  });
}

void RoiAlignBackward(const RoiAlignProblem& problem, const float* regions, const float* dy, float* dx) {
  const RoiPoolingProblem& p = problem.grid;
  const int64_t plane = p.height * p.width, cells = p.pooled_height * p.pooled_width;
  const int64_t work = plane + p.regions * WorkOf(p) / std::max<int64_t>(1, p.images);
  ParallelFor(p.images * p.channels, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    std::fill_n(dx + begin * plane, (end - begin) * plane, 0.0f);
    for (int64_t number = 0; number < p.regions; ++number) {
      const Region region(problem, regions + number * kRegionNumbers);
      const int64_t first = std::max(begin, region.image * p.channels);
      const int64_t last = std::min(end, (region.image + 1) * p.channels);
      if (first >= last) continue;
      const float* const gradient = dy + (number - region.image) * p.channels * cells;
      ForEachColumns(region, [&](const Columns& columns) {
        for (int64_t i = first; i < last; ++i) {
          SpreadPoints(p, region.rows, columns, region.share(), gradient + i * cells, dx + i * plane);
        }
      });
    }
  });
}

}  // namespace crema
