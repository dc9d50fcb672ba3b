#include "cuda/arrays/lanes.h"
#include "cuda/arrays/packs.h"
#include "cuda/operations.h"
#include "ops/sampling/roi_align_formulas.h"

namespace crema::cuda {

namespace {

using roi_align::Axis;
using roi_align::Point;
using roi_align::Range;
using roi_align::Region;

// One cell of one plane.
struct MeanOfPoints {
  RoiAlignProblem problem;
  const float *x, *regions;
  float* y;

  __device__ void operator()(int64_t at) const {
    const RoiPoolingProblem& p = problem.grid;
    int64_t rest = at;
    const int64_t column = SplitOff(&rest, p.pooled_width), row = SplitOff(&rest, p.pooled_height);
    const int64_t channel = SplitOff(&rest, p.channels);
    const Region region(problem, regions + rest * kRegionNumbers);
    const Range rows = region.rows.Cell(row), columns = region.columns.Cell(column);
    const float* const plane = x + (region.image * p.channels + channel) * p.height * p.width;
    float sum = 0;
    for (int32_t i = rows.begin; i < rows.end; ++i) {
      const Point down = region.rows.At(i);
      const float *const upper = plane + down.low * p.width, *const lower = plane + down.high * p.width;
      for (int32_t k = columns.begin; k < columns.end; ++k) {
        const Point across = region.columns.At(k);
        const float above = across.of_low * upper[across.low] + across.of_high * upper[across.high];
        const float below = across.of_low * lower[across.low] + across.of_high * lower[across.high];
        sum += down.of_low * above + down.of_high * below;
      }
    }
    y[at] = sum * region.share();
  }
};

constexpr int kTogether = 8;  // channels of a thread, which have their points in common

// Gathers what the points of all regions give to an element, region by region, so that sums have one order. A block has
// some elements of an image, in some channels. Its threads look at a region each, then all of them walk those that were
// found.
__global__ void __launch_bounds__(kThreads)
    SpreadPoints(RoiAlignProblem problem, const float* regions, const float* dy, float* dx) {
  __shared__ Region found[kThreads];
  const RoiPoolingProblem& p = problem.grid;
  const int64_t plane = p.height * p.width, cells = p.pooled_height * p.pooled_width;
  const int64_t groups = (p.channels + kTogether - 1) / kTogether;
  int64_t image = blockIdx.x;
  const int64_t element = SplitOff(&image, (plane + kThreads - 1) / kThreads) * kThreads + threadIdx.x;
  const int64_t channel = SplitOff(&image, groups) * kTogether;
  int64_t rest = element;
  const auto column = static_cast<int32_t>(SplitOff(&rest, p.width)), row = static_cast<int32_t>(rest);
  float sums[kTogether] = {};
  for (int64_t first = 0; first < p.regions; first += kThreads) {
    __syncthreads();  // before what the others still read is written over
    if (first + threadIdx.x < p.regions) {
      found[threadIdx.x] = Region(problem, regions + (first + threadIdx.x) * kRegionNumbers);
    }
    __syncthreads();
    const int64_t left = p.regions - first;
    const int count = left < static_cast<int64_t>(kThreads) ? static_cast<int>(left) : static_cast<int>(kThreads);
    for (int n = 0; element < plane && n < count; ++n) {
      const Region& region = found[n];
      if (region.image != image) continue;
      const Range rows = region.rows.Near(row), columns = region.columns.Near(column);
      if (rows.empty() || columns.empty()) continue;
      const float share = region.share();
      const float* const gradient = dy + ((first + n) * p.channels + channel) * cells;
      for (int32_t i = rows.begin; i < rows.end; ++i) {
        const float down = share * region.rows.At(i).Of(row);
        if (down == 0.0f) continue;
        const int64_t in_row = i / region.rows.points * p.pooled_width;
        for (int32_t k = columns.begin; k < columns.end; ++k) {
          const float weight = down * region.columns.At(k).Of(column);
          if (weight == 0.0f) continue;  // gradients may be infinite
          const int64_t cell = in_row + k / region.columns.points;
          CREMA_UNROLL
          for (int c = 0; c < kTogether; ++c) {
            if (channel + c < p.channels) sums[c] += weight * gradient[c * cells + cell];
          }
        }
      }
    }
  }
  if (element >= plane) return;
  CREMA_UNROLL
  for (int c = 0; c < kTogether; ++c) {
    if (channel + c < p.channels) dx[(image * p.channels + channel + c) * plane + element] = sums[c];
  }
}

}  // namespace

void CudaOperations::RoiAlignForward(const RoiAlignProblem& problem, const float* x, const float* regions, float* y) {
  if (problem.grid.images <= 0) return;  // every region was reported
  ForEach(queue(), problem.grid.outputs(), MeanOfPoints{problem, x, regions, y});
}

void CudaOperations::RoiAlignBackward(const RoiAlignProblem& problem, const float* regions, const float* dy,
                                      float* dx) {
  const RoiPoolingProblem& p = problem.grid;
  const int64_t tiles = (p.height * p.width + kThreads - 1) / kThreads;
  const int64_t blocks = tiles * ((p.channels + kTogether - 1) / kTogether) * p.images;
  if (blocks == 0) return;
  Launch(queue(), static_cast<unsigned>(blocks), kThreads, SpreadPoints, problem, regions, dy, dx);
}

}  // namespace crema::cuda
