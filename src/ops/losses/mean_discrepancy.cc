#include "ops/losses/mean_discrepancy.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/arrays/sums.h"
#include "ops/losses/mean_discrepancy_formulas.h"

namespace crema {

namespace {

using discrepancy::Pairs;

struct Itself {
  CREMA_INLINE float operator()(float x) const { return x; }
};

double SumOfTerms(const Pairs& pairs) {
  const int64_t n = pairs.loss.count();
  return SumBlocks(n * n, 4 * pairs.loss.kernels, [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t at = begin; at < end; ++at) sum += pairs.Term(at / n, at % n);
    return sum;
  });
}

}  // namespace

void MeanDiscrepancyForward(const MeanDiscrepancy& loss, const float* first, const float* second,
                            const DiscrepancyTape& tape, float* value) {
  const int64_t n = loss.count();
  SquaredDistances(loss.Vectors(first, second), tape.distance);
  *tape.gamma = discrepancy::GammaOf(loss, SumOf(Itself(), n * n, static_cast<const float*>(tape.distance)));
  *value = static_cast<float>(SumOfTerms({loss, tape.distance, tape.gamma}));
}

void MeanDiscrepancyBackward(const MeanDiscrepancy& loss, const float* value_gradient, const float* first,
                             const float* second, const DiscrepancyTape& tape, float* weights, float* first_gradient,
                             float* second_gradient) {
  const int64_t n = loss.count();
  const Pairs pairs = {loss, tape.distance, tape.gamma};
  ParallelFor(n, std::max<int64_t>(1, 2048 / (n * loss.kernels + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < n; ++j) weights[i * n + j] = *value_gradient * pairs.WeightOf(i, j);
    }
  });
  SumWeightedDifferences(loss.Vectors(first, second), weights, loss.Vectors(first_gradient, second_gradient));
}

}  // namespace crema
