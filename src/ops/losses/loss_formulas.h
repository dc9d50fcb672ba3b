// What ops/losses/target_losses.h and ops/losses/label_losses.h do with single elements, shared by the CPU and kernels
// of a GPU.
#ifndef CREMA_OPS_LOSSES_LOSS_FORMULAS_H_
#define CREMA_OPS_LOSSES_LOSS_FORMULAS_H_

#include <cmath>

#include "ops/arrays/functors.h"
#include "ops/losses/label_losses.h"
#include "ops/losses/target_losses.h"

namespace crema::formula {

// A formula's result times a number.
template <typename Formula>
struct Times {
  Formula formula;
  float factor;
  template <typename... Inputs>
  CREMA_FORMULA float operator()(Inputs... inputs) const {
    return factor * formula(inputs...);
  }
};

// The same times a weight, the first input.
template <typename Formula>
struct WeightedBy {
  Formula formula;
  template <typename... Inputs>
  CREMA_FORMULA float operator()(float weight, Inputs... inputs) const {
    return Weighted(weight, formula(inputs...));
  }
};

// Of a - b, times inside; the result times outside.
struct DifferenceTerm {
  DifferenceLoss loss;
  CREMA_FORMULA float Of(float d) const {
    const float size = std::fabs(d);
    const float square = 0.5f * loss.sharpness * d * d, line = size - 0.5f / loss.sharpness;
    return size < loss.limit ? square : line;
  }
  CREMA_FORMULA float operator()(float a, float b) const { return Of(a - b); }
  CREMA_FORMULA float operator()(float a, float b, float inside) const { return Of(inside * (a - b)); }
  CREMA_FORMULA float operator()(float a, float b, float inside, float outside) const {
    return outside * Of(inside * (a - b));
  }
};
// With respect to a.
struct DifferenceGradient {
  DifferenceLoss loss;
  CREMA_FORMULA float Of(float d) const {
    const float size = std::fabs(d), sign = std::copysign(1.0f, d);
    return size < loss.limit ? loss.sharpness * d : sign;
  }
  CREMA_FORMULA float operator()(float a, float b) const { return Of(a - b); }
  CREMA_FORMULA float operator()(float a, float b, float inside) const { return inside * Of(inside * (a - b)); }
  CREMA_FORMULA float operator()(float a, float b, float inside, float outside) const {
    return outside * inside * Of(inside * (a - b));
  }
};

// As Caffe compares targets with ignore_label: without their fraction.
struct IgnoredTarget {
  LabelRule rule;
  CREMA_FORMULA bool operator()(float target) const {
    return rule.has_ignore & (std::trunc(target) == static_cast<float>(rule.ignore));
  }
};
// 1 for each target that counts.
struct CountedTarget {
  LabelRule rule;
  CREMA_FORMULA float operator()(float target) const { return IgnoredTarget{rule}(target) ? 0.0f : 1.0f; }
};
// log(1 + e^x) - x * target, without large numbers in between.
struct SigmoidTerm {
  LabelRule rule;
  CREMA_FORMULA float operator()(float x, float target) const {
    const float linear = x * (target - (x >= 0.0f ? 1.0f : 0.0f));
    const float term = LogOfOneAnd(Exp(-std::fabs(x))) - linear;
    return IgnoredTarget{rule}(target) ? 0.0f : term;
  }
};
struct SigmoidTermGradient {
  LabelRule rule;
  CREMA_FORMULA float operator()(float x, float target) const {
    const float gradient = Sigmoid()(x) - target;
    return IgnoredTarget{rule}(target) ? 0.0f : gradient;
  }
};

// 1 for each target that counts and is `wanted`.
struct CountedAs {
  LabelRule rule;
  float wanted;
  CREMA_FORMULA float operator()(float target) const {
    return ((target == wanted) & !IgnoredTarget{rule}(target)) ? 1.0f : 0.0f;
  }
};
CREMA_FORMULA SigmoidBalance BalanceOf(const SigmoidLoss& loss, double ones, double zeros) {
  const double all = ones + zeros;
  if (!(all > 0)) return {0.0f, 0.0f};
  return {static_cast<float>(zeros / all), static_cast<float>(loss.negative_weight * ones / all)};
}
// A term or gradient of a score and its target, balanced.
template <typename Formula>
struct BalancedBy {
  Formula formula;
  SigmoidBalance balance;
  CREMA_FORMULA float operator()(float x, float target) const {
    const float weight = target == 1.0f ? balance.of_ones : target == 0.0f ? balance.of_zeros : 0.0f;
    return Weighted(weight, formula(x, target));
  }
};

// Of a pair with this squared distance. As in Caffe, any `similar` that is 1 or more without its fraction says that
// both are of one kind; negative ones FindBadTarget has found.
struct ContrastiveTerm {
  float margin;
  bool legacy;
  CREMA_FORMULA static bool AreSimilar(float similar) { return std::fabs(similar) >= 1.0f; }
  CREMA_FORMULA float operator()(float similar, float squared) const {
    const float gap = margin - (legacy ? squared : std::sqrt(squared));
    const float positive = gap < 0.0f ? 0.0f : gap;
    const float term = AreSimilar(similar) ? squared : legacy ? positive : positive * positive;
    return similar == similar ? term : similar;  // a NaN is to be seen
  }
  // What a - b is multiplied by in half the gradient with respect to a.
  CREMA_FORMULA float Gradient(float similar, float squared) const {
    const float distance = std::sqrt(squared);
    const float gap = margin - (legacy ? squared : distance);
    const float apart = legacy ? 1.0f : gap / (distance + 1e-4f);  // Caffe's guard against a distance of 0
    return AreSimilar(similar) ? 1.0f : gap > 0.0f ? -apart : 0.0f;
  }
};

// Of one element of a triplet: what it adds to the difference of the squared distances.
struct TripletTerm {
  CREMA_FORMULA float operator()(float anchor, float same, float other) const {
    const float near = anchor - same, far = anchor - other;
    return near * near - far * far;
  }
};
// Of the difference of a triplet's squared distances; a NaN is to be seen. Where it is not 0, half its gradients are
// other - same, same - anchor and anchor - other.
struct TripletViolation {
  float margin;
  CREMA_FORMULA float operator()(float difference) const {
    const float violation = margin + difference;
    return violation < 0.0f ? 0.0f : violation;
  }
};

// Of one score.
struct HingeTerm {
  bool squares;
  CREMA_FORMULA static float Violation(float x, bool own) {
    const float margin = 1.0f + (own ? -x : x);
    return margin < 0.0f ? 0.0f : margin;
  }
  CREMA_FORMULA float operator()(float x, bool own) const {
    const float violation = Violation(x, own);
    return squares ? violation * violation : violation;
  }
  CREMA_FORMULA float Gradient(float x, bool own) const {
    const float violation = Violation(x, own), slope = squares ? 2.0f * violation : (violation > 0.0f ? 1.0f : 0.0f);
    return own ? -slope : slope;
  }
};

// -log(probability) as Caffe takes it, which a NaN stays.
CREMA_FORMULA float ProbabilityLoss(float probability) {
  const float least = kLeastProbability;
  return -Log(probability < least ? least : probability);
}
// The derivative with respect to the probability.
CREMA_FORMULA float ProbabilityLossGradient(float probability) {
  const float least = kLeastProbability;
  return -1.0f / (probability < least ? least : probability);
}

}  // namespace crema::formula

#endif  // CREMA_OPS_LOSSES_LOSS_FORMULAS_H_
