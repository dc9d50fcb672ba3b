#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "ops/sampling/interpolation_formulas.h"

namespace crema::cuda {

namespace {

using interpolation::Axes;
using interpolation::Range;
using interpolation::Source;

// One element of the result.
struct Interpolate {
  Interpolation p;
  Axes axes;
  const float* x;
  float* y;

  __device__ void operator()(int64_t at) const {
    int64_t plane = at;
    const int64_t column = SplitOff(&plane, p.result_width), row = SplitOff(&plane, p.result_height);
    const Source rows = axes.rows.At(static_cast<int32_t>(row)),
                 columns = axes.columns.At(static_cast<int32_t>(column));
    const float* part = x + (plane * p.height + p.row) * p.width + p.column;
    const float *upper = part + rows.first * p.width, *lower = part + rows.second * p.width;
    const float below = rows.weight, above = 1.0f - below, right = columns.weight, left = 1.0f - right;
    y[at] = above * (left * upper[columns.first] + right * upper[columns.second]) +
            below * (left * lower[columns.first] + right * lower[columns.second]);
  }
};

// Each element of the source sums what its readers have, kLanes threads together: neighbours in a warp.
template <int kLanes>
__global__ void __launch_bounds__(kThreads)
    GatherReaders(Interpolation p, Axes axes, const float* dy, float* dx, int64_t elements) {
  const int64_t step = int64_t{gridDim.x} * (kThreads / kLanes);
  const auto lane = static_cast<int32_t>(threadIdx.x % kLanes);
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kLanes; i < elements; i += step) {
    int64_t plane = i;
    const int64_t column = SplitOff(&plane, p.width) - p.column, row = SplitOff(&plane, p.height) - p.row;
    float sum = 0;
    if (row >= 0 && row < p.part_height && column >= 0 && column < p.part_width) {
      const auto own_row = static_cast<int32_t>(row), own_column = static_cast<int32_t>(column);
      const Range down = axes.rows.Readers(own_row), across = axes.columns.Readers(own_column);
      const int32_t width = across.end - across.begin;
      const float* from = dy + plane * p.result_height * p.result_width;
      for (int32_t r = down.begin; r < down.end; ++r) {
        const float weight = axes.rows.At(r).Of(own_row);
        if (weight == 0.0f) continue;  // gradients may be infinite
        const float* line = from + r * p.result_width + across.begin;
        for (int32_t c = lane; c < width; c += kLanes) {
          const float share = axes.columns.At(across.begin + c).Of(own_column);
          sum += share == 0.0f ? 0.0f : weight * share * line[c];
        }
      }
    }
    if constexpr (kLanes > 1) sum = SumWarp(sum);
    if (lane == 0) dx[i] = sum;
  }
}

}  // namespace

void CudaOperations::InterpolationForward(const Interpolation& problem, const float* x, float* y) {
  ForEach(queue(), problem.planes * problem.result_height * problem.result_width,
          Interpolate{problem, Axes(problem), x, y});
}

void CudaOperations::InterpolationBackward(const Interpolation& problem, const float* dy, float* dx) {
  const int64_t elements = problem.planes * problem.height * problem.width;
  if (elements == 0) return;
  // Readers side by side that a warp has work with.
  constexpr int64_t kMany = 16;
  if (2 * problem.result_width >= kMany * problem.part_width) {
    Launch(queue(), BlocksFor(queue(), elements, kThreads / 32), kThreads, GatherReaders<32>, problem, Axes(problem),
           dy, dx, elements);
  } else {
    Launch(queue(), BlocksFor(queue(), elements), kThreads, GatherReaders<1>, problem, Axes(problem), dy, dx, elements);
  }
}

}  // namespace crema::cuda
