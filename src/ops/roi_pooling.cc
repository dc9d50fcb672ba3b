#include "ops/roi_pooling.h"

#include <algorithm>
#include <cfloat>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/roi_pooling_formulas.h"

namespace crema {

namespace {

using roi_pooling::Range;
using roi_pooling::Region;

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int32_t kColumns = 256;  // of a region that are worked on at a time

// The largest element of each of the columns and its index in the plane: the first one of equals, -1 where none is
// larger than -FLT_MAX.
struct Columns {
  float largest[kColumns];
  int32_t from[kColumns];
};

CREMA_MULTIVERSION void LargestOfColumns(const float* plane, int64_t width, Range rows, Range columns, Columns* to) {
  const int32_t count = columns.end - columns.begin;
#pragma omp simd
  for (int32_t i = 0; i < count; ++i) {
    to->largest[i] = -FLT_MAX;
    to->from[i] = -1;
  }
  for (int32_t row = rows.begin; row < rows.end; ++row) {
    const auto first = static_cast<int32_t>(row * width + columns.begin);
    const float* from = plane + first;
#pragma omp simd
    for (int32_t i = 0; i < count; ++i) {
      const bool larger = from[i] > to->largest[i];
      to->from[i] = larger ? first + i : to->from[i];
      to->largest[i] = larger ? from[i] : to->largest[i];
    }
  }
}

// One row of cells of one plane.
void PoolCells(const RoiPoolingProblem& p, const Region& region, Range rows, const float* plane, float* y,
               int32_t* from) {
  const Range whole = region.columns.Whole(p.pooled_width, p.width);
  for (int64_t cell = 0; cell < p.pooled_width; ++cell) {
    const bool empty = rows.empty() || region.columns.Elements(cell, p.width).empty();
    y[cell] = empty ? 0.0f : -FLT_MAX;
    if (from != nullptr) from[cell] = -1;
  }
  if (rows.empty()) return;
  Columns columns;
  for (int32_t begin = whole.begin; begin < whole.end; begin += kColumns) {
    const Range here = {begin, std::min(whole.end, begin + kColumns)};
    LargestOfColumns(plane, p.width, rows, here, &columns);
    for (int64_t cell = 0; cell < p.pooled_width; ++cell) {
      const Range elements = region.columns.Elements(cell, p.width);
      // Cells of more than one piece go on from what they have, whose columns come before.
      float best = y[cell];
      int32_t best_from = from != nullptr ? from[cell] : -1;
      for (int32_t c = std::max(elements.begin, here.begin); c < std::min(elements.end, here.end); ++c) {
        const float value = columns.largest[c - begin];
        const int32_t at = columns.from[c - begin];
        if (value > best || (value == best && at < best_from)) {
          best = value;
          best_from = at;
        }
      }
      y[cell] = best;
      if (from != nullptr) from[cell] = best_from;
    }
  }
}

}  // namespace

int64_t FindBadRegion(const RoiPoolingProblem& problem, const float* regions) {
  for (int64_t i = 0; i < problem.regions * kRegionNumbers; ++i) {
    if (roi_pooling::IsBad(problem, i % kRegionNumbers, regions[i])) return i;
  }
  return -1;
}

void RoiPoolingForward(const RoiPoolingProblem& p, const float* x, const float* regions, float* y, int32_t* from) {
  if (p.outputs() == 0) return;
  // The work on a cell depends on its region; as much as for an image at most.
  const int64_t work = std::min(p.height * p.width, 4 * p.pooled_height * p.pooled_width);
  ParallelFor(p.regions * p.channels, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t number = i / p.channels, channel = i % p.channels;
      const Region region(p, regions + number * kRegionNumbers);
      const float* plane = x + (region.image * p.channels + channel) * p.height * p.width;
      for (int64_t row = 0; row < p.pooled_height; ++row) {
        const int64_t at = (i * p.pooled_height + row) * p.pooled_width;
        PoolCells(p, region, region.rows.Elements(row, p.height), plane, y + at, from ? from + at : nullptr);
      }
    }
  });
}

void RoiPoolingBackward(const RoiPoolingProblem& p, const float* regions, const int32_t* from, const float* dy,
                        float* dx) {
  const int64_t plane = p.height * p.width, cells = p.pooled_height * p.pooled_width;
  const int64_t work = plane + p.regions * cells / std::max<int64_t>(1, p.images) + p.regions;
  ParallelFor(p.images * p.channels, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    std::fill(dx + begin * plane, dx + end * plane, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / p.channels, channel = i % p.channels;
      float* to = dx + i * plane;
      for (int64_t number = 0; number < p.regions; ++number) {
        if (static_cast<int64_t>(regions[number * kRegionNumbers]) != image) continue;
        const int64_t at = (number * p.channels + channel) * cells;
        for (int64_t cell = 0; cell < cells; ++cell) {
          if (from[at + cell] >= 0) to[from[at + cell]] += dy[at + cell];
        }
      }
    }
  });
}

}  // namespace crema
