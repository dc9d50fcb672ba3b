#include "cuda/losses/losses.h"
#include "cuda/losses/pairwise.h"
#include "cuda/operations.h"
#include "ops/losses/lifted_structure_formulas.h"

namespace crema::cuda {

namespace {

using lifted::Pairs;

// A block for each item.
__global__ void __launch_bounds__(kThreads) FindLogSums(Pairs pairs) {
  const int64_t n = pairs.loss.items;
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    float nearest = lifted::NoOthers();
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
      if (!pairs.AreAlike(i, k)) nearest = Larger()(nearest, pairs.Nearness(i, k));
    }
    nearest = ReduceBlock(nearest, lifted::NoOthers(), Larger());
    double sum = 0;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x) sum += pairs.TermOf(i, k, nearest);
    sum = SumBlock(sum);
    if (threadIdx.x == 0) pairs.LogSums()[i] = lifted::LogSum(nearest, sum);
  }
}

// The same.
__global__ void __launch_bounds__(kThreads) SumPairs(Pairs pairs) {
  const int64_t n = pairs.loss.items;
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    double share = 0, loss = 0, count = 0;
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
      if (i == j || !pairs.AreAlike(i, j)) continue;
      const float violation = pairs.Violation(i, j);
      share += pairs.Share(i, j);
      loss += violation * violation;
      count += 1;
    }
    share = SumBlock(share);
    loss = SumBlock(loss);
    count = SumBlock(count);
    if (threadIdx.x > 0) continue;
    pairs.Shares()[i] = static_cast<float>(share);
    pairs.Losses()[i] = static_cast<float>(loss);
    pairs.PairCounts()[i] = static_cast<float>(count);
  }
}

struct NumbersOf {
  const float* numbers;
  float factor;
  __device__ double operator()(int64_t i) const { return factor * numbers[i]; }
};

struct WeighPair {
  Pairs pairs;
  LossGradientScale scale;
  float* weights;

  __device__ void operator()(int64_t at) const {
    int64_t i = at;
    const int64_t j = SplitOff(&i, pairs.loss.items);
    weights[at] = 2 * scale() * pairs.WeightOf(i, j);
  }
};

}  // namespace

void CudaOperations::LiftedStructureForward(const LiftedStructure& loss, const float* x, const float* label,
                                            const LiftedTape& tape, float* value) {
  const int64_t n = loss.items;
  cuda::SquaredDistances(queue(), {n, 0, loss.width, x, nullptr}, tape.distance);
  const Pairs pairs = {loss, tape.distance, label, tape.rows};
  if (n > 0) {
    Launch(queue(), BlocksFor(queue(), n, 1), kThreads, FindLogSums, pairs);
    Launch(queue(), BlocksFor(queue(), n, 1), kThreads, SumPairs, pairs);
  }
  auto* const parts = Scratch<double>(kSumBlocks * sizeof(double));
  SumTerms(queue(), n, NumbersOf{pairs.PairCounts(), 1}, KeepCount{tape.all_pairs}, parts);
  SumTerms(queue(), n, NumbersOf{pairs.Losses(), 0.5f}, DivideByKept{0, tape.all_pairs, value}, parts);
}

void CudaOperations::LiftedStructureBackward(const LiftedStructure& loss, const float* value_gradient, const float* x,
                                             const float* label, const LiftedTape& tape, float* weights, float* dx) {
  const int64_t n = loss.items;
  const Pairs pairs = {loss, tape.distance, label, tape.rows};
  ForEach(queue(), n * n, WeighPair{pairs, {value_gradient, tape.all_pairs}, weights});
  cuda::SumWeightedDifferences(queue(), {n, 0, loss.width, x, nullptr}, weights, {n, 0, loss.width, dx, nullptr});
}

}  // namespace crema::cuda
