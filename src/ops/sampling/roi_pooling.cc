#include "ops/sampling/roi_pooling.h"

#include <algorithm>
#include <cfloat>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/sampling/roi_pooling_formulas.h"

namespace crema {

namespace {

using roi_pooling::Range;
using roi_pooling::Region;

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int32_t kColumns = 256;  // of a region that are worked on at a time
constexpr int64_t kCells = 64;     // side by side, likewise

// The largest element of each of the columns and its index in the plane: the first one of equals, -1 where none is
// larger than -FLT_MAX.
struct Columns {
  float largest[kColumns];
  int32_t from[kColumns];
};

CREMA_INLINE void FindLargest(const float* plane, int64_t width, Range rows, Range columns, Columns* to) {
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

// Some cells that lie side by side, in all rows of the grid.
struct CellColumns {
  int64_t count;
  Range cells[kCells];  // the elements of each
  Range whole;          // of all

  CellColumns(const RoiPoolingProblem& p, const Region& region, int64_t first)
      : count(std::min(kCells, p.pooled_width - first)) {
    for (int64_t i = 0; i < count; ++i) cells[i] = region.columns.Elements(first + i, p.width);
    whole = {cells[0].begin, cells[count - 1].end};
  }
};

// Those cells of one plane.
CREMA_MULTIVERSION void PoolPlane(const RoiPoolingProblem& p, const Region& region, const CellColumns& across,
                                  const float* plane, float* y, int32_t* from) {
  Columns columns;
  float best[kCells];
  int32_t best_from[kCells];
  for (int64_t row = 0; row < p.pooled_height; ++row) {
    const Range rows = region.rows.Elements(row, p.height);
    for (int64_t i = 0; i < across.count; ++i) {
      best[i] = rows.empty() || across.cells[i].empty() ? 0.0f : -FLT_MAX;
      best_from[i] = -1;
    }
    for (int32_t begin = across.whole.begin; begin < across.whole.end && !rows.empty(); begin += kColumns) {
      const Range here = {begin, std::min(across.whole.end, begin + kColumns)};
      FindLargest(plane, p.width, rows, here, &columns);
      for (int64_t i = 0; i < across.count; ++i) {
        const int32_t first = std::max(across.cells[i].begin, here.begin) - begin;
        const int32_t last = std::min(across.cells[i].end, here.end) - begin;
        for (int32_t c = first; c < last; ++c) {
          const bool larger = columns.largest[c] > best[i];
          const bool earlier = columns.largest[c] == best[i] && columns.from[c] < best_from[i];
          best_from[i] = larger || earlier ? columns.from[c] : best_from[i];
          best[i] = larger ? columns.largest[c] : best[i];
        }
      }
    }
    std::copy(best, best + across.count, y + row * p.pooled_width);
    if (from != nullptr) std::copy(best_from, best_from + across.count, from + row * p.pooled_width);
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
    for (int64_t i = begin; i < end;) {
      const int64_t number = i / p.channels, last = std::min(end, (number + 1) * p.channels);
      const Region region(p, regions + number * kRegionNumbers);
      const float* image = x + region.image * p.channels * p.height * p.width;
      for (int64_t cell = 0; cell < p.pooled_width; cell += kCells) {
        const CellColumns across(p, region, cell);
        for (int64_t plane = i; plane < last; ++plane) {
          const int64_t at = plane * p.pooled_height * p.pooled_width + cell;
          PoolPlane(p, region, across, image + plane % p.channels * p.height * p.width, y + at,
                    from ? from + at : nullptr);
        }
      }
      i = last;
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
        if (roi_pooling::ImageOf(p, regions + number * kRegionNumbers) != image) continue;
        const int64_t at = (number * p.channels + channel) * cells;
        for (int64_t cell = 0; cell < cells; ++cell) {
          if (from[at + cell] >= 0) to[from[at + cell]] += dy[at + cell];
        }
      }
    }
  });
}

}  // namespace crema
