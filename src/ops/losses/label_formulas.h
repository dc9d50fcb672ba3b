// What ops/losses/softmax.h and ops/losses/classification.h do with one label, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_LOSSES_LABEL_FORMULAS_H_
#define CREMA_OPS_LOSSES_LABEL_FORMULAS_H_

#include <cfloat>
#include <cmath>

#include "base/multiversion.h"
#include "ops/losses/classification.h"
#include "ops/losses/softmax.h"

namespace crema::labels {

CREMA_HOST_DEVICE inline bool IsIgnored(const LabelRule& rule, float label) {
  bool ignored = rule.has_ignore && label == static_cast<float>(rule.ignore);
  for (int i = 0; i < rule.also_ignored_count; ++i) ignored |= label == rule.also_ignored[i];
  return ignored;
}

CREMA_HOST_DEVICE inline bool IsBad(const LabelRule& rule, int64_t classes, float label) {
  const bool good = label >= 0 && label < static_cast<float>(classes) && label == std::floor(label);
  return !good && !IsIgnored(rule, label);
}

// Where the value of class 0 at a position is; those of other classes follow axis.inner apart.
CREMA_HOST_DEVICE inline int64_t FirstOffset(const ClassAxis& axis, int64_t position) {
  return position / axis.inner * axis.classes * axis.inner + position % axis.inner;
}
// Where the value of a position's label is.
CREMA_HOST_DEVICE inline int64_t Offset(const ClassAxis& axis, int64_t position, float label) {
  return FirstOffset(axis, position) + static_cast<int64_t>(label) * axis.inner;
}

// -log(probability), which a NaN stays.
CREMA_HOST_DEVICE inline float Loss(float probability) {
  return -std::log(probability < FLT_MIN ? FLT_MIN : probability);
}

CREMA_HOST_DEVICE inline float Weight(const float* class_weight, float label) {
  return class_weight ? class_weight[static_cast<int64_t>(label)] : 1.0f;
}

// What a class is to be; `own`: it is the label's.
CREMA_HOST_DEVICE inline float Target(float smoothing, int64_t classes, bool own) {
  const float of_all = smoothing / static_cast<float>(classes);
  return own ? 1.0f - smoothing + of_all : of_all;
}
CREMA_HOST_DEVICE inline float Gradient(float scale, float probability, float target) {
  return scale * probability - scale * target;
}

// What focal_gamma multiplies the loss of a place with, whose label has this probability; at gamma 0 it is 1.
CREMA_HOST_DEVICE inline float FocalFactor(float gamma, float probability) {
  if (gamma == 0) return 1.0f;
  const float missing = 1.0f - probability;
  return missing > 0 ? std::pow(missing, gamma) : missing * 0.0f;
}
// The same for its gradient with respect to the scores, by the product rule. A NaN stays one in both.
CREMA_HOST_DEVICE inline float FocalGradientFactor(float gamma, float probability) {
  if (gamma == 0) return 1.0f;
  const float missing = 1.0f - probability;
  if (!(missing > 0)) return missing * 0.0f;
  return std::pow(missing, gamma) * (1.0f + gamma * probability / missing * Loss(probability));
}

// What one position adds to the sum of losses, before class weights.
CREMA_HOST_DEVICE inline double FocalLoss(const SoftmaxLoss& loss, const float* probability, int64_t position,
                                          float label) {
  const float of_label = probability[Offset(loss.axis, position, label)];
  return static_cast<double>(FocalFactor(loss.focal_gamma, of_label)) * static_cast<double>(Loss(of_label));
}
// The same with smoothing.
CREMA_HOST_DEVICE inline double SmoothedLoss(const SoftmaxLoss& loss, const float* probability, int64_t position,
                                             float label) {
  const float* const first = probability + FirstOffset(loss.axis, position);
  const auto own = static_cast<int64_t>(label);
  double sum = 0;
  for (int64_t c = 0; c < loss.axis.classes; ++c) {
    const double target = Target(loss.smoothing, loss.axis.classes, c == own);
    if (target > 0) sum += target * static_cast<double>(Loss(first[c * loss.axis.inner]));
  }
  return sum;
}
// What the loss of a position is multiplied by, whose label counts.
CREMA_HOST_DEVICE inline float WeightOf(const SoftmaxLoss& loss, int64_t position, float label) {
  return loss.weights[position] * Weight(loss.class_weight, label);
}
// What it adds, of a label that counts. One of weight 0 adds nothing, whatever its loss is.
CREMA_HOST_DEVICE inline double LossTerm(const SoftmaxLoss& loss, const float* probability, int64_t position,
                                         float label) {
  const double weight = WeightOf(loss, position, label);
  if (weight == 0) return 0;
  return weight * (loss.smoothing > 0 ? SmoothedLoss(loss, probability, position, label)
                                      : FocalLoss(loss, probability, position, label));
}

// What a label adds to what the sum of losses is divided by.
CREMA_HOST_DEVICE inline float Share(const SoftmaxLoss& loss, float label) {
  return Weight(loss.divides_by_labels ? nullptr : loss.class_weight, label);
}

// What the sum of losses is divided by, `weight` being the shares of the labels that count; a batch of ignored labels
// only has loss 0.
CREMA_HOST_DEVICE inline double Normalizer(const SoftmaxLoss& loss, double weight) {
  if (loss.normalizer > 0) return static_cast<double>(loss.normalizer);
  return weight > 0 ? weight : 1.0;
}

// Whether a score of the position counts as one that is higher than the label's, `own`; so that a NaN is never right.
CREMA_HOST_DEVICE inline bool IsHigher(float score, float own) { return !(score < own); }

}  // namespace crema::labels

#endif  // CREMA_OPS_LOSSES_LABEL_FORMULAS_H_
