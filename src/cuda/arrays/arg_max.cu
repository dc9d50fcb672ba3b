#include <limits>

#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "ops/arrays/arg_max.h"

namespace crema::cuda {

namespace {

constexpr int64_t kWarpClasses = 2048;  // at most, of rows that a warp looks through
constexpr uint64_t kAboveAll = std::numeric_limits<uint64_t>::max();

// The greatest rank below `bound` among classes first, first + step ...
__device__ uint64_t NextRank(const ClassAxis& axis, int64_t first, int64_t step, uint64_t bound, const float* x) {
  uint64_t best = 0;
  for (int64_t c = first; c < axis.classes; c += step) {
    const uint64_t rank = formula::RankOf(x[c * axis.inner], static_cast<uint32_t>(c));
    if (rank < bound && rank > best) best = rank;
  }
  return best;
}

// Classes lie next to each other; kAcross threads look through those of a row: a warp or the whole block.
template <unsigned kAcross>
__global__ void __launch_bounds__(kThreads) RankRows(ArgMaxProblem problem, const float* x, float* y) {
  const ClassAxis& axis = problem.axis;
  const unsigned lane = threadIdx.x % kAcross;
  const int64_t step = int64_t{gridDim.x} * (kThreads / kAcross);
  for (int64_t row = int64_t{blockIdx.x} * (kThreads / kAcross) + threadIdx.x / kAcross; row < axis.outer;
       row += step) {
    const float* from = x + row * axis.classes;
    uint64_t rank = kAboveAll;
    for (int64_t k = 0; k < problem.top_k; ++k) {
      rank = NextRank(axis, lane, kAcross, rank, from);
      if constexpr (kAcross == 32) {
        rank = ReduceWarp(rank, Larger());
      } else {
        rank = ReduceBlock(rank, uint64_t{0}, Larger());
      }
      if (lane == 0) WriteRanked(problem, k, rank, from, y + row * problem.extent());
    }
  }
}

// A thread for each position, beside those of its neighbours.
struct RankPosition {
  ArgMaxProblem problem;
  const float* x;
  float* y;

  __device__ void operator()(int64_t position) const {
    const ClassAxis& axis = problem.axis;
    int64_t outer = position;
    const int64_t inner = SplitOff(&outer, axis.inner);
    const float* from = x + outer * axis.classes * axis.inner + inner;
    float* to = y + outer * problem.extent() * axis.inner + inner;
    uint64_t rank = kAboveAll;
    for (int64_t k = 0; k < problem.top_k; ++k) {
      rank = NextRank(axis, 0, 1, rank, from);
      WriteRanked(problem, k, rank, from, to);
    }
  }
};

}  // namespace

void CudaOperations::ArgMax(const ArgMaxProblem& problem, const float* x, float* y) {
  const ClassAxis& axis = problem.axis;
  if (axis.positions() == 0) return;
  if (axis.inner > 1) {
    ForEach(queue(), axis.positions(), RankPosition{problem, x, y});
  } else if (axis.classes > kWarpClasses) {
    Launch(queue(), BlocksFor(queue(), axis.outer, 1), kThreads, RankRows<kThreads>, problem, x, y);
  } else {
    Launch(queue(), BlocksFor(queue(), axis.outer, kThreads / 32), kThreads, RankRows<32>, problem, x, y);
  }
}

}  // namespace crema::cuda
