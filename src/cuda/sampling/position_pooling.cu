#include "cuda/arrays/lanes.h"
#include "cuda/operations.h"
#include "ops/sampling/roi_pooling_formulas.h"

namespace crema::cuda {

namespace {

using roi_pooling::PositionCell;
using roi_pooling::Range;

// One cell of one channel.
struct MeanOfCell {
  RoiPoolingProblem p;
  const float *x, *regions;
  float* y;

  __device__ void operator()(int64_t at) const {
    int64_t rest = at;
    const int64_t column = SplitOff(&rest, p.pooled_width), row = SplitOff(&rest, p.pooled_height);
    const int64_t channel = SplitOff(&rest, p.channels);
    const PositionCell cell(p, regions + rest * kRegionNumbers, row, column);
    const int64_t planes = (cell.image * p.channels + channel) * p.pooled_height;
    const float* plane = x + ((planes + row) * p.pooled_width + column) * p.height * p.width;
    float sum = 0;
    for (int32_t r = cell.rows.begin; r < cell.rows.end; ++r) {
      for (int32_t c = cell.columns.begin; c < cell.columns.end; ++c) sum += plane[r * p.width + c];
    }
    y[at] = cell.empty() ? 0.0f : sum / cell.area();
  }
};

// Gathers what the cells of all regions give to an element, region by region, so that sums have one order. A block has
// some elements of a plane, which has one cell of each region. Its threads look at a region each, then all of them walk
// what was found.
__global__ void __launch_bounds__(kThreads)
    SpreadMeans(RoiPoolingProblem p, const float* regions, const float* dy, float* dx) {
  __shared__ Range rows[kThreads], columns[kThreads];
  __shared__ float value[kThreads];
  const int64_t elements = p.height * p.width;
  int64_t plane = blockIdx.x;
  const int64_t begin = SplitOff(&plane, (elements + kThreads - 1) / kThreads) * kThreads;
  const int64_t element = begin + threadIdx.x;
  int64_t image = plane;
  const int64_t cell_column = SplitOff(&image, p.pooled_width), cell_row = SplitOff(&image, p.pooled_height);
  const int64_t channel = SplitOff(&image, p.channels);
  int64_t row = element;
  const int64_t column = SplitOff(&row, p.width);
  float sum = 0;
  for (int64_t first = 0; first < p.regions; first += kThreads) {
    const int64_t number = first + threadIdx.x;
    __syncthreads();  // before what the others still read is written over
    rows[threadIdx.x] = {0, 0};
    if (number < p.regions) {
      const PositionCell cell(p, regions + number * kRegionNumbers, cell_row, cell_column);
      if (cell.image == image && !cell.empty()) {
        rows[threadIdx.x] = cell.rows;
        columns[threadIdx.x] = cell.columns;
        const int64_t at =
            ((number * p.channels + channel) * p.pooled_height + cell_row) * p.pooled_width + cell_column;
        value[threadIdx.x] = dy[at] / cell.area();
      }
    }
    __syncthreads();
    const int64_t rest = p.regions - first;
    const int count = rest < static_cast<int64_t>(kThreads) ? static_cast<int>(rest) : static_cast<int>(kThreads);
    for (int i = 0; i < count; ++i) {
      if (row < rows[i].begin || row >= rows[i].end) continue;
      if (column >= columns[i].begin && column < columns[i].end) sum += value[i];
    }
  }
  if (element < elements) dx[plane * elements + element] = sum;
}

}  // namespace

void CudaOperations::PositionPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions,
                                            float* y) {
  if (problem.images <= 0) return;  // every region was reported
  ForEach(queue(), problem.outputs(), MeanOfCell{problem, x, regions, y});
}

void CudaOperations::PositionPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const float* dy,
                                             float* dx) {
  const int64_t tiles = (problem.height * problem.width + kThreads - 1) / kThreads;
  const int64_t planes = problem.images * problem.channels * problem.pooled_height * problem.pooled_width;
  if (planes * tiles == 0) return;
  Launch(queue(), static_cast<unsigned>(planes * tiles), kThreads, SpreadMeans, problem, regions, dy, dx);
}

}  // namespace crema::cuda
