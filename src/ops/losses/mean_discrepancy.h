// How far two sets of vectors lie apart, by Gaussian kernels of several widths (Gretton et al., "A Kernel Two-Sample
// Test", 2012; Long et al., "Learning Transferable Features with Deep Adaptation Networks", 2015), plain f32 in CPU
// memory. Sums are accumulated in double.
#ifndef CREMA_OPS_LOSSES_MEAN_DISCREPANCY_H_
#define CREMA_OPS_LOSSES_MEAN_DISCREPANCY_H_

#include <cstdint>

#include "base/multiversion.h"
#include "ops/losses/pairwise.h"

namespace crema {

// The mean of k(a, b) over all different a and b of the first set, + that of the second, - 2 times that of one of each;
// k(a, b) = the sum over i < kernels of exp(-gamma * multiple^(i - kernels / 2) * |a - b|^2), kernels / 2 rounded down,
// 1 / gamma = the mean of |a - b|^2 over all different vectors of both sets; where all are equal, gamma = 0.
struct MeanDiscrepancy {
  int64_t first_count = 2, second_count = 2, width = 1;  // counts: at least 2
  int64_t kernels = 5;
  float multiple = 2;

  CREMA_HOST_DEVICE int64_t count() const { return first_count + second_count; }
  template <typename T>
  VectorPair<T> Vectors(T* first, T* second) const {
    return {first_count, second_count, width, first, second};
  }
};
// What Forward keeps for Backward: squared distances, count x count, and gamma.
struct DiscrepancyTape {
  float *distance, *gamma;
};

// Threaded; allocates nothing.
void MeanDiscrepancyForward(const MeanDiscrepancy& loss, const float* first, const float* second,
                            const DiscrepancyTape& tape, float* value);
// gamma counts as a constant. weights: scratch of count x count numbers. Either gradient may be null.
void MeanDiscrepancyBackward(const MeanDiscrepancy& loss, const float* value_gradient, const float* first,
                             const float* second, const DiscrepancyTape& tape, float* weights, float* first_gradient,
                             float* second_gradient);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_MEAN_DISCREPANCY_H_
