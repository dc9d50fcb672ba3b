// Losses of values against targets of the same shape. All are sums, divided; accumulated in double. f32.
#ifndef CREMA_OPS_LOSSES_TARGET_LOSSES_H_
#define CREMA_OPS_LOSSES_TARGET_LOSSES_H_

#include <cstdint>
#include <limits>

#include "crema/tensor.h"
#include "ops/losses/element_weights.h"
#include "ops/losses/softmax.h"

namespace crema {

// Of differences d = a - b: sharpness * d^2 / 2 where |d| < limit, else |d| - 1 / (2 * sharpness). As it is: half the
// square, everywhere.
struct DifferenceLoss {
  float sharpness = 1;
  float limit = std::numeric_limits<float>::infinity();
  double divisor = 1;  // of the sum
};
// Of equal counts. Where `inside` is defined, d is multiplied by it; where `outside` is, too, what comes of d by that.
// `weights`, where neither is, multiply what comes of d, too.
struct DifferenceInputs {
  Tensor a, b, inside, outside;
  ElementWeights weights = {};
};
void DifferenceLossForward(const DifferenceLoss& loss, const DifferenceInputs& inputs, float* value);
// Of each position around `axis` what its channels add to the sum, before it is divided. Inputs are dense and plain,
// without `weights`.
void DifferenceLossTerms(const DifferenceLoss& loss, const ClassAxis& axis, const DifferenceInputs& inputs,
                         float* terms);
// Tensors that are not defined are left out; they may not be inputs.
void DifferenceLossBackward(const DifferenceLoss& loss, const float* value_gradient, const DifferenceInputs& inputs,
                            const Tensor& da, const Tensor& db);

// Of sigmoid(x) as the probability of the target, which may lie between 0 and 1: the sum of
// log(1 + e^x) - x * target over the targets that do not, without their fraction, equal rule.ignore.
struct SigmoidLoss {
  LabelRule rule;
  int64_t normalizer = 0;  // what the sum is divided by; 0: the number of targets that count, 1 where none does
  // Above 0: in each of so many items targets that are 1 and those that are 0 weigh alike: of n and m of them the terms
  // are multiplied by m / (n + m) and by negative_weight * n / (n + m). No other targets count.
  int64_t balanced_items = 0;
  float negative_weight = 1;
};
// What the terms of targets that are 1 and of those that are 0 are multiplied by.
struct SigmoidBalance {
  float of_ones, of_zeros;
};
// What Forward keeps for Backward: what the sum was divided by, and the balance of each item, null where there is none.
struct SigmoidTape {
  float* normalizer;
  SigmoidBalance* balance = nullptr;
};
// Of equal counts. `weights` multiply the terms, and do not change how many targets count.
struct SigmoidInputs {
  Tensor x, target;
  ElementWeights weights = {};
};
void SigmoidLossForward(const SigmoidLoss& loss, const SigmoidInputs& inputs, const SigmoidTape& tape, float* value);
void SigmoidLossBackward(const SigmoidLoss& loss, const float* value_gradient, const SigmoidTape& tape,
                         const SigmoidInputs& inputs, const Tensor& dx);

// Of pairs of vectors: half the mean over the pairs of D^2 where `similar` is 1 or more, else of max(0, margin - D)^2,
// or, in the legacy version, max(0, margin - D^2), with D their distance.
struct ContrastiveLoss {
  int64_t pairs = 1, channels = 1;
  float margin = 1;
  bool legacy = false;
};
// squared_distance: one for each pair, for Backward.
void ContrastiveLossForward(const ContrastiveLoss& loss, const float* a, const float* b, const float* similar,
                            float* squared_distance, float* value);
// da, db: null where not wanted.
void ContrastiveLossBackward(const ContrastiveLoss& loss, const float* value_gradient, const float* a, const float* b,
                             const float* similar, const float* squared_distance, float* da, float* db);

// Of anchors, vectors of their kind and vectors of another kind: half the mean over the triplets of
// max(0, margin + |anchor - same|^2 - |anchor - other|^2).
struct TripletLoss {
  int64_t triplets = 1, channels = 1;
  float margin = 1;
};
template <typename T>
struct Triplets {
  T *anchor, *same, *other;
};
// difference: of the squared distances, one for each triplet, for Backward.
void TripletLossForward(const TripletLoss& loss, const Triplets<const float>& x, float* difference, float* value);
// dx: null where not wanted.
void TripletLossBackward(const TripletLoss& loss, const float* value_gradient, const Triplets<const float>& x,
                         const float* difference, const Triplets<float>& dx);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_TARGET_LOSSES_H_
