// What ops/losses/soft_targets.h does with one target, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_LOSSES_SOFT_TARGET_FORMULAS_H_
#define CREMA_OPS_LOSSES_SOFT_TARGET_FORMULAS_H_

#include <cfloat>

#include "ops/arrays/elementary_functions.h"
#include "ops/losses/label_formulas.h"
#include "ops/losses/soft_targets.h"

namespace crema::soft_targets {

CREMA_HOST_DEVICE inline bool IsBad(float target) { return !((target >= 0) & (target <= FLT_MAX)); }

// Of class c.
CREMA_HOST_DEVICE inline float Weighted(const float* class_weight, int64_t c, float target) {
  return class_weight ? class_weight[c] * target : target;
}

// What a class is to be, by its weighted target and what its position weighs.
struct Wanted {
  float own, of_all;
  CREMA_HOST_DEVICE Wanted(const SoftmaxLoss& loss, float weight)
      : own(1.0f - loss.smoothing), of_all(loss.smoothing / static_cast<float>(loss.axis.classes) * weight) {}
  CREMA_HOST_DEVICE float operator()(float weighted) const { return own * weighted + of_all; }
};

// What a class adds to the sum of losses. One that is not wanted adds nothing, whatever its probability is.
CREMA_FORMULA double Term(float wanted, float probability) {
  const float loss = -formula::Log(probability < FLT_MIN ? FLT_MIN : probability);
  const double term = static_cast<double>(wanted) * static_cast<double>(loss);
  return wanted > 0 ? term : 0.0;
}

}  // namespace crema::soft_targets

#endif  // CREMA_OPS_LOSSES_SOFT_TARGET_FORMULAS_H_
