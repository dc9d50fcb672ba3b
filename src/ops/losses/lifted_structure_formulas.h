// Pairs of a lifted structure, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_LOSSES_LIFTED_STRUCTURE_FORMULAS_H_
#define CREMA_OPS_LOSSES_LIFTED_STRUCTURE_FORMULAS_H_

#include <cmath>

#include "ops/arrays/elementary_functions.h"
#include "ops/losses/lifted_structure.h"

namespace crema::lifted {

CREMA_FORMULA float NoOthers() { return -__builtin_inff(); }

// log(e^a + e^b), where either may be -infinity.
CREMA_FORMULA float LogOfSum(float a, float b) {
  const float larger = a < b ? b : a, smaller = a < b ? a : b;
  return smaller == NoOthers() ? larger : larger + std::log1p(std::exp(smaller - larger));
}

CREMA_FORMULA float LogSum(float nearest, double sum) {
  return sum == 0 ? NoOthers() : nearest + static_cast<float>(std::log(sum));
}

struct Pairs {
  LiftedStructure loss;
  const float *distance, *label;
  float* rows;

  CREMA_FORMULA float* LogSums() const { return rows; }                  // l(i)
  CREMA_FORMULA float* Shares() const { return rows + loss.items; }      // see Share
  CREMA_FORMULA float* Losses() const { return rows + 2 * loss.items; }  // sums of max(0, J)^2
  CREMA_FORMULA float* PairCounts() const { return rows + 3 * loss.items; }

  CREMA_FORMULA bool AreAlike(int64_t i, int64_t j) const { return label[i] == label[j]; }
  CREMA_FORMULA float Distance(int64_t i, int64_t j) const { return std::sqrt(distance[i * loss.items + j]); }
  // Of vectors that are not alike: what i's log of a sum is one of.
  CREMA_FORMULA float Nearness(int64_t i, int64_t k) const { return loss.margin - Distance(i, k); }
  // What k adds to the sum of i, divided by e^nearest, of the nearest one; a NaN is to be seen.
  CREMA_FORMULA float TermOf(int64_t i, int64_t k, float nearest) const {
    const float near = Nearness(i, k);
    return AreAlike(i, k) || near == NoOthers() ? 0.0f : std::exp(near - nearest);
  }
  // Of a pair: max(0, J), which a NaN stays.
  CREMA_FORMULA float Violation(int64_t i, int64_t j) const {
    const float violation = Distance(i, j) + LogOfSum(LogSums()[i], LogSums()[j]);
    return violation < 0.0f ? 0.0f : violation;
  }
  // Of a pair's violation, that part which i's sum has in the pair's.
  CREMA_FORMULA float Share(int64_t i, int64_t j) const {
    const float violation = Violation(i, j), own = LogSums()[i];
    if (violation == 0.0f || own == NoOthers()) return 0.0f;
    return violation * std::exp(own - LogOfSum(own, LogSums()[j]));
  }
  // The derivative of the sum of max(0, J)^2 / 2 over the pairs by the distance of i and j, divided by that.
  CREMA_FORMULA float WeightOf(int64_t i, int64_t j) const {
    const float apart = Distance(i, j);
    if (i == j || apart == 0.0f) return 0.0f;
    if (AreAlike(i, j)) return Violation(i, j) / apart;
    const float near = Nearness(i, j);
    const float of_i = Shares()[i] * std::exp(near - LogSums()[i]);
    const float of_j = Shares()[j] * std::exp(near - LogSums()[j]);
    return -(of_i + of_j) / apart;
  }
};

}  // namespace crema::lifted

#endif  // CREMA_OPS_LOSSES_LIFTED_STRUCTURE_FORMULAS_H_
