// Kernels of pairs of vectors, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_LOSSES_MEAN_DISCREPANCY_FORMULAS_H_
#define CREMA_OPS_LOSSES_MEAN_DISCREPANCY_FORMULAS_H_

#include <cmath>

#include "ops/arrays/elementary_functions.h"
#include "ops/losses/mean_discrepancy.h"

namespace crema::discrepancy {

// By the sum of the squared distances of all pairs, each counted twice.
CREMA_FORMULA float GammaOf(const MeanDiscrepancy& loss, double sum) {
  const auto count = static_cast<double>(loss.count());
  return sum == 0 ? 0.0f : static_cast<float>(count * (count - 1) / sum);
}

struct Pairs {
  MeanDiscrepancy loss;
  const float *distance, *gamma;

  // What the kernel of vectors i and j counts, (i, j) and (j, i) apart.
  CREMA_FORMULA double Share(int64_t i, int64_t j) const {
    if (i == j) return 0;
    const auto first = static_cast<double>(loss.first_count), second = static_cast<double>(loss.second_count);
    const bool of_first = i < loss.first_count;
    if (of_first != (j < loss.first_count)) return -1 / (first * second);
    return of_first ? 1 / (first * (first - 1)) : 1 / (second * (second - 1));
  }
  CREMA_FORMULA float Widest() const {
    float factor = *gamma;
    for (int64_t k = 0; k < loss.kernels / 2; ++k) factor /= loss.multiple;
    return factor;
  }
  CREMA_FORMULA double Term(int64_t i, int64_t j) const {
    const float squared = distance[i * loss.count() + j];
    float factor = Widest(), sum = 0;
    for (int64_t k = 0; k < loss.kernels; ++k, factor *= loss.multiple) sum += std::exp(-factor * squared);
    return Share(i, j) * sum;
  }
  // What i - j is multiplied by in the gradient of i.
  CREMA_FORMULA float WeightOf(int64_t i, int64_t j) const {
    const float squared = distance[i * loss.count() + j];
    float factor = Widest(), slope = 0;
    for (int64_t k = 0; k < loss.kernels; ++k, factor *= loss.multiple) slope -= factor * std::exp(-factor * squared);
    return static_cast<float>(4 * Share(i, j)) * slope;
  }
};

}  // namespace crema::discrepancy

#endif  // CREMA_OPS_LOSSES_MEAN_DISCREPANCY_FORMULAS_H_
