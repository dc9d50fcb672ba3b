// What ops/detection/multibox.h does with single objects and priors, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_MULTIBOX_FORMULAS_H_
#define CREMA_OPS_DETECTION_MULTIBOX_FORMULAS_H_

#include <cfloat>

#include "ops/detection/multibox.h"
#include "ops/detection/suppression.h"
#include "ops/losses/loss_formulas.h"

namespace crema::multibox {

inline constexpr float kLeastOverlap = 1e-6f;  // smaller ones are none

// The image of a row; -1 where it is no object or cannot be used.
CREMA_FORMULA int64_t ImageOf(const MultiBoxProblem& p, const float* row) {
  if (row[0] == -1.0f || (!p.use_difficult && row[7] != 0.0f)) return -1;
  const ObjectRows rows = p.rows();
  for (int which = 0; which < 7; ++which) {
    if (object_rows::IsBad(rows, row, which)) return -1;
  }
  return static_cast<int64_t>(row[0]);
}

CREMA_FORMULA BoundingBox BoxAt(const float* numbers, int64_t i) {
  return {numbers[4 * i], numbers[4 * i + 1], numbers[4 * i + 2], numbers[4 * i + 3]};
}
CREMA_FORMULA BoundingBox BoxOf(const float* row) { return {row[3], row[4], row[5], row[6]}; }

CREMA_FORMULA bool IsWhole(const BoundingBox& box) {
  return (box.xmin >= 0.0f) & (box.ymin >= 0.0f) & (box.xmax >= 0.0f) & (box.ymax >= 0.0f) & (box.xmin <= 1.0f) &
         (box.ymin <= 1.0f) & (box.xmax <= 1.0f) & (box.ymax <= 1.0f);
}

// As one of two numbers: the object that a prior will have unless another one takes the prior before.
CREMA_FORMULA int32_t Reserved(int32_t row) { return -3 - row; }
CREMA_FORMULA bool IsReserved(int32_t match) { return match <= -3; }
// Whether an object may still take the prior.
CREMA_FORMULA bool IsFree(int32_t match) { return (match < 0) & (match != kLeftOut); }

// What a prior is before objects take theirs, whose largest overlap is with `row`.
CREMA_FORMULA int32_t FirstMatch(const MultiBoxProblem& p, bool left_out, float overlap, int32_t row) {
  const bool reserves = p.per_prediction & (overlap > kLeastOverlap) & (overlap >= p.overlap_threshold);
  const int32_t free = reserves ? Reserved(row) : kNoMatch;
  return left_out ? kLeftOut : free;
}

CREMA_FORMULA bool MayBeNegative(const MultiBoxProblem& p, int32_t match, float overlap) {
  return (match == kNoMatch) & (overlap < p.negative_overlap);
}

// How many negatives an image has.
CREMA_FORMULA int64_t Negatives(const MultiBoxProblem& p, int64_t matches, int64_t candidates) {
  const float wanted = static_cast<float>(matches) * p.negatives_per_match;
  return wanted < static_cast<float>(candidates) ? static_cast<int64_t>(wanted) : candidates;
}

CREMA_FORMULA float LabelOf(const MultiBoxProblem& p, const float* objects, int32_t row) {
  return p.agnostic ? static_cast<float>(p.background + 1) : objects[row * ObjectRows::kNumbers + 1];
}
// Of priors without an object, before negatives are chosen. Where all count, no class of theirs has target 1, as in
// SSD's own layer.
CREMA_FORMULA float LabelWithoutObject(const MultiBoxProblem& p) {
  const auto every = static_cast<float>(p.logistic ? p.classes : p.background);
  return p.mines ? static_cast<float>(kUncounted) : every;
}

CREMA_FORMULA float ClassTarget(float label, int64_t c) {
  const float target = label == static_cast<float>(c) ? 1.0f : 0.0f;
  return label == static_cast<float>(kUncounted) ? label : target;
}

// The loss of a score as that of a prior without an object.
CREMA_FORMULA float LogisticLoss(const MultiBoxProblem& p, float score, int64_t c) {
  return formula::SigmoidTerm{{}}(score, c == p.background ? 1.0f : 0.0f);
}
CREMA_FORMULA float SoftmaxLossOf(float probability) {
  return -formula::Log(probability < FLT_MIN ? FLT_MIN : probability);
}

CREMA_FORMULA BoundingBox LocationTarget(const MultiBoxProblem& p, const MultiBoxMatches& m, int64_t prior,
                                         int32_t row) {
  const float* v = m.priors + 4 * (p.priors + prior);
  const BoxVariance variance =
      p.divides_by_variance ? BoxVariance{{1, 1, 1, 1}} : BoxVariance{{v[0], v[1], v[2], v[3]}};
  const BoundingBox object = BoxOf(m.objects + row * ObjectRows::kNumbers);
  return boxes::Encode(p.code, BoxAt(m.priors, prior), variance, object);
}

// Of place i, whose prior this is.
CREMA_FORMULA void WriteLocation(const MultiBoxProblem& p, const MultiBoxMatches& m, const MultiBoxTargets& t,
                                 int64_t i, int64_t prior) {
  const int32_t row = m.match[i];
  const BoundingBox box = row >= 0 ? LocationTarget(p, m, prior, row) : BoxAt(m.location, i);
  float* const to = t.location + 4 * i;
  to[0] = box.xmin, to[1] = box.ymin, to[2] = box.xmax, to[3] = box.ymax;
  if (!t.weight) return;
  for (int k = 0; k < 4; ++k) t.weight[4 * i + k] = row >= 0 ? 1.0f / m.priors[4 * (p.priors + prior) + k] : 0.0f;
}

CREMA_FORMULA float Share(const MultiBoxProblem& p, int64_t matches) {
  const double counted = matches > 1 ? static_cast<double>(matches) : 1.0;
  return static_cast<float>(1.0 / (p.divisor > 0 ? p.divisor : counted));
}

}  // namespace crema::multibox

#endif  // CREMA_OPS_DETECTION_MULTIBOX_FORMULAS_H_
