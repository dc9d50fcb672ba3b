#include "cuda/losses/losses.h"
#include "cuda/losses/pairwise.h"
#include "cuda/operations.h"
#include "ops/losses/mean_discrepancy_formulas.h"

namespace crema::cuda {

namespace {

using discrepancy::Pairs;

struct DistanceAt {
  const float* distance;
  __device__ double operator()(int64_t i) const { return distance[i]; }
};

struct KeepGamma {
  MeanDiscrepancy loss;
  float* gamma;
  __device__ void operator()(double total) const { *gamma = discrepancy::GammaOf(loss, total); }
};

struct TermAt {
  Pairs pairs;
  __device__ double operator()(int64_t at) const {
    int64_t i = at;
    const int64_t j = SplitOff(&i, pairs.loss.count());
    return pairs.Term(i, j);
  }
};

struct WeighPair {
  Pairs pairs;
  const float* value_gradient;
  float* weights;

  __device__ void operator()(int64_t at) const {
    int64_t i = at;
    const int64_t j = SplitOff(&i, pairs.loss.count());
    weights[at] = *value_gradient * pairs.WeightOf(i, j);
  }
};

}  // namespace

void CudaOperations::MeanDiscrepancyForward(const MeanDiscrepancy& loss, const float* first, const float* second,
                                            const DiscrepancyTape& tape, float* value) {
  const int64_t pairs = loss.count() * loss.count();
  auto* const parts = Scratch<double>(kSumBlocks * sizeof(double));
  cuda::SquaredDistances(queue(), loss.Vectors(first, second), tape.distance);
  SumTerms(queue(), pairs, DistanceAt{tape.distance}, KeepGamma{loss, tape.gamma}, parts);
  SumTerms(queue(), pairs, TermAt{{loss, tape.distance, tape.gamma}}, DivideBy{1, value}, parts);
}

void CudaOperations::MeanDiscrepancyBackward(const MeanDiscrepancy& loss, const float* value_gradient,
                                             const float* first, const float* second, const DiscrepancyTape& tape,
                                             float* weights, float* first_gradient, float* second_gradient) {
  ForEach(queue(), loss.count() * loss.count(), WeighPair{{loss, tape.distance, tape.gamma}, value_gradient, weights});
  cuda::SumWeightedDifferences(queue(), loss.Vectors(first, second), weights,
                               loss.Vectors(first_gradient, second_gradient));
}

}  // namespace crema::cuda
