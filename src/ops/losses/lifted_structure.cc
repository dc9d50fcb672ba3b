#include "ops/losses/lifted_structure.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/losses/lifted_structure_formulas.h"
#include "ops/losses/pairwise.h"

namespace crema {

namespace {

using lifted::Pairs;

// Items that are compared with all others, worth waking a thread for.
int64_t GrainOf(int64_t items) { return std::max<int64_t>(1, 2048 / (items + 1)); }

float LogSumOf(const Pairs& pairs, int64_t i) {
  float nearest = lifted::NoOthers();
  for (int64_t k = 0; k < pairs.loss.items; ++k) {
    if (!pairs.AreAlike(i, k)) nearest = std::max(nearest, pairs.Nearness(i, k));
  }
  double sum = 0;
  for (int64_t k = 0; k < pairs.loss.items; ++k) sum += pairs.TermOf(i, k, nearest);
  return lifted::LogSum(nearest, sum);
}

void SumPairs(const Pairs& pairs, int64_t i) {
  double share = 0, loss = 0;
  int64_t count = 0;
  for (int64_t j = 0; j < pairs.loss.items; ++j) {
    if (i == j || !pairs.AreAlike(i, j)) continue;
    const float violation = pairs.Violation(i, j);
    share += pairs.Share(i, j);
    loss += violation * violation;
    ++count;
  }
  pairs.Shares()[i] = static_cast<float>(share);
  pairs.Losses()[i] = static_cast<float>(loss);
  pairs.PairCounts()[i] = static_cast<float>(count);
}

double SumOfNumbers(const float* numbers, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += numbers[i];
  return sum;
}

Pairs PairsOf(const LiftedStructure& loss, const float* label, const LiftedTape& tape) {
  return {loss, tape.distance, label, tape.rows};
}

}  // namespace

void LiftedStructureForward(const LiftedStructure& loss, const float* x, const float* label, const LiftedTape& tape,
                            float* value) {
  const int64_t n = loss.items;
  SquaredDistances({n, 0, loss.width, x, nullptr}, tape.distance);
  const Pairs pairs = PairsOf(loss, label, tape);
  ParallelFor(n, GrainOf(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pairs.LogSums()[i] = LogSumOf(pairs, i);
  });
  ParallelFor(n, GrainOf(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) SumPairs(pairs, i);
  });
  *tape.all_pairs = static_cast<float>(std::max(1.0, SumOfNumbers(pairs.PairCounts(), n)));
  *value = static_cast<float>(SumOfNumbers(pairs.Losses(), n) / 2 / static_cast<double>(*tape.all_pairs));
}

void LiftedStructureBackward(const LiftedStructure& loss, const float* value_gradient, const float* x,
                             const float* label, const LiftedTape& tape, float* weights, float* dx) {
  const int64_t n = loss.items;
  const Pairs pairs = PairsOf(loss, label, tape);
  const float factor = 2 * *value_gradient / *tape.all_pairs;
  ParallelFor(n, GrainOf(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < n; ++j) weights[i * n + j] = factor * pairs.WeightOf(i, j);
    }
  });
  SumWeightedDifferences({n, 0, loss.width, x, nullptr}, weights, {n, 0, loss.width, dx, nullptr});
}

}  // namespace crema
