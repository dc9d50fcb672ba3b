#include <cfloat>

#include "cuda/arrays/lanes.h"
#include "cuda/arrays/packs.h"
#include "cuda/device/faults.h"
#include "cuda/operations.h"
#include "ops/sampling/roi_pooling_formulas.h"

namespace crema::cuda {

namespace {

using roi_pooling::Range;
using roi_pooling::Region;
using roi_pooling::Span;

struct IsBadNumber {
  RoiPoolingProblem problem;
  __device__ bool operator()(float value, int64_t position) const {
    return roi_pooling::IsBad(problem, position % kRegionNumbers, value);
  }
};

// One cell of one plane.
struct PoolCell {
  RoiPoolingProblem p;
  const float *x, *regions;
  float* y;
  int32_t* from;  // may be null

  __device__ void operator()(int64_t at) const {
    int64_t rest = at;
    const int64_t column = SplitOff(&rest, p.pooled_width), row = SplitOff(&rest, p.pooled_height);
    const int64_t channel = SplitOff(&rest, p.channels);
    const Region region(p, regions + rest * kRegionNumbers);
    const Range rows = region.rows.Elements(row, p.height), columns = region.columns.Elements(column, p.width);
    const float* plane = x + (region.image * p.channels + channel) * p.height * p.width;
    float largest = rows.empty() || columns.empty() ? 0.0f : -FLT_MAX;
    int32_t largest_from = -1;
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      for (int32_t c = columns.begin; c < columns.end; ++c) {
        const auto i = static_cast<int32_t>(r * p.width + c);
        if (!(plane[i] > largest)) continue;
        largest = plane[i];
        largest_from = i;
      }
    }
    y[at] = largest;
    if (from) from[at] = largest_from;
  }
};

constexpr int kTogether = 8;  // channels of a thread, which have their cells in common

// Gathers the gradients of the cells that chose an element, region by region, so that sums have one order. A block has
// some elements of an image, in some channels. Its threads look at a region each and mark those that reach the block,
// then all of them walk the marks.
__global__ void __launch_bounds__(kThreads)
    PoolBack(RoiPoolingProblem p, const float* regions, const int32_t* from, const float* dy, float* dx) {
  __shared__ Span rows[kThreads], columns[kThreads];
  __shared__ uint32_t marks[kThreads / 32];
  const int64_t plane = p.height * p.width, cells = p.pooled_height * p.pooled_width;
  const int64_t groups = (p.channels + kTogether - 1) / kTogether;
  int64_t image = blockIdx.x;
  const int64_t begin = SplitOff(&image, (plane + kThreads - 1) / kThreads) * kThreads;
  const int64_t channel = SplitOff(&image, groups) * kTogether;
  const int64_t end = begin + kThreads < plane ? begin + kThreads : plane, element = begin + threadIdx.x;
  int64_t row = element;
  const int64_t column = SplitOff(&row, p.width);
  const int64_t first_row = begin / p.width, last_row = (end - 1) / p.width;
  float sums[kTogether] = {};
  for (int64_t first = 0; first < p.regions; first += kThreads) {
    __syncthreads();  // before the marks are cleared
    if (threadIdx.x < kThreads / 32) marks[threadIdx.x] = 0;
    __syncthreads();
    if (first + threadIdx.x < p.regions) {
      const Region region(p, regions + (first + threadIdx.x) * kRegionNumbers);
      const Range reached = region.rows.Whole(p.pooled_height, p.height);
      if (region.image == image && reached.begin <= last_row && reached.end > first_row) {
        rows[threadIdx.x] = region.rows;
        columns[threadIdx.x] = region.columns;
        // Every bit is added once, which is the same as setting it.
        atomicAdd(&marks[threadIdx.x / 32], 1u << threadIdx.x % 32);
      }
    }
    __syncthreads();
    for (int i = 0; element < end && i < static_cast<int>(kThreads); ++i) {
      if (marks[i / 32] == 0) {
        i |= 31;
        continue;
      }
      if ((marks[i / 32] >> i % 32 & 1u) == 0) continue;
      const Range down = rows[i].Cells(row, p.pooled_height);
      if (down.empty()) continue;
      const Range across = columns[i].Cells(column, p.pooled_width);
      const int64_t of_region = ((first + i) * p.channels + channel) * cells;
      for (int32_t r = down.begin; r < down.end; ++r) {
        for (int32_t c = across.begin; c < across.end; ++c) {
          const int64_t at = of_region + r * p.pooled_width + c;
          CREMA_UNROLL
          for (int k = 0; k < kTogether; ++k) {
            if (channel + k < p.channels && from[at + k * cells] == static_cast<int32_t>(element)) {
              sums[k] += dy[at + k * cells];
            }
          }
        }
      }
    }
  }
  if (element >= end) return;
  CREMA_UNROLL
  for (int k = 0; k < kTogether; ++k) {
    if (channel + k < p.channels) dx[(image * p.channels + channel + k) * plane + element] = sums[k];
  }
}

}  // namespace

int64_t CudaOperations::FindBadRegion(const RoiPoolingProblem& problem, const float* regions) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), problem.regions * kRegionNumbers, regions, IsBadNumber{problem});
  return -1;
}

void CudaOperations::RoiPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions, float* y,
                                       int32_t* from) {
  if (problem.images <= 0) return;  // every region was reported
  ForEach(queue(), problem.outputs(), PoolCell{problem, x, regions, y, from});
}

void CudaOperations::RoiPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const int32_t* from,
                                        const float* dy, float* dx) {
  const int64_t tiles = (problem.height * problem.width + kThreads - 1) / kThreads;
  const int64_t blocks = tiles * ((problem.channels + kTogether - 1) / kTogether) * problem.images;
  if (blocks == 0) return;
  Launch(queue(), static_cast<unsigned>(blocks), kThreads, PoolBack, problem, regions, from, dy, dx);
}

}  // namespace crema::cuda
