// The loss of class scores against soft targets: a share of each class for each position of a ClassAxis, in the place
// of a label, of the scores' shape. f32. What a position adds is the mean of what ops/losses/classification.h adds for
// each of the classes as label, weighted with the shares; so one that is 1 is a label.
#ifndef CREMA_OPS_LOSSES_SOFT_TARGETS_H_
#define CREMA_OPS_LOSSES_SOFT_TARGETS_H_

#include <cstdint>

#include "ops/losses/classification.h"

namespace crema {

// Index of the first target that is negative or not finite; -1 when all are fine.
int64_t FindBadTarget(int64_t count, const float* target);

// As SoftmaxLossForward, SoftmaxLossTerms and SoftmaxLossBackward, of a loss whose rule and focal_gamma are not set. A
// position weighs the sum of its targets, each times the class's weight; where loss.normalizer is 0 the sum is divided
// by what all positions weigh, loss.weights left aside. Results do not depend on the number of threads.
void SoftTargetLossForward(const SoftmaxLoss& loss, const float* probability, const float* target, float* value);
void SoftTargetLossTerms(const SoftmaxLoss& loss, const float* probability, const float* target, float* terms);
// dx = *value_gradient / normalizer * (weight of the position * probability - what the class is to be). dx may be
// probability.
void SoftTargetLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                            const float* target, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_SOFT_TARGETS_H_
