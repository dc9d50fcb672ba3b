#include "ops/losses/soft_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "comparison.h"

namespace crema {
namespace {

// Probabilities of classes, which sum up to 1 over the class axis.
std::vector<float> Probabilities(const ClassAxis& axis) {
  std::vector<float> y = RandomValues(axis.positions() * axis.classes, 4);
  SoftmaxForward(axis, y.data(), y.data());
  return y;
}

std::vector<float> Targets(const ClassAxis& axis) {
  std::vector<float> targets = RandomValues(axis.positions() * axis.classes, 5);
  for (float& target : targets) target = std::max(0.0f, target);
  return targets;
}

int64_t At(const ClassAxis& axis, int64_t position, int64_t c) {
  return (position / axis.inner * axis.classes + c) * axis.inner + position % axis.inner;
}

struct Case {
  SoftmaxLoss loss;
  std::vector<float> class_weight, position_weight;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Shape& shape : {Shape{9, 7, 1}, Shape{3, 7, 150}}) {
    for (const float smoothing : {0.0f, 0.3f}) {
      for (const int weights : {0, 1, 2}) {
        Case one;
        one.loss.axis = ClassAxis(shape, 1);
        one.loss.smoothing = smoothing;
        if (weights > 0) one.class_weight = {1, 0.5, 2, 0, 3, 0.1f, 1};
        one.loss.divides_by_labels = weights == 2;
        one.loss.normalizer = weights == 1 ? 0 : one.loss.axis.positions();
        cases.push_back(one);
        // One weight for each position, or for each item.
        one.loss.weights.elements = weights == 2 ? one.loss.axis.inner : 1;
        one.position_weight.resize(one.loss.axis.positions() / one.loss.weights.elements);
        for (size_t i = 0; i < one.position_weight.size(); ++i)
          one.position_weight[i] = 0.5f * static_cast<float>(i % 5);
        cases.push_back(one);
      }
    }
  }
  for (Case& one : cases) {
    one.loss.class_weight = one.class_weight.empty() ? nullptr : one.class_weight.data();
    one.loss.weights.data = one.position_weight.empty() ? nullptr : one.position_weight.data();
  }
  return cases;
}

struct Results {
  float value = 0;
  std::vector<float> terms, dx;
};

TEST(SoftTargets, OneThatIsOneIsALabel) {
  for (const Case& one : Cases()) {
    const SoftmaxLoss& loss = one.loss;
    const ClassAxis& axis = loss.axis;
    const std::vector<float> probability = Probabilities(axis);
    std::vector<float> label(axis.positions()), target(probability.size());
    for (int64_t i = 0; i < axis.positions(); ++i) {
      label[i] = static_cast<float>(i * 3 % axis.classes);
      target[At(axis, i, i * 3 % axis.classes)] = 1;
    }
    const float two = 2;
    Results expected, actual;
    for (Results* results : {&expected, &actual}) {
      results->terms = Poison(axis.positions());
      results->dx = Poison(axis.positions() * axis.classes);
    }
    SoftmaxLossForward(loss, probability.data(), label.data(), &expected.value);
    SoftmaxLossTerms(loss, probability.data(), label.data(), expected.terms.data());
    SoftmaxLossBackward(loss, &two, probability.data(), label.data(), expected.dx.data());
    SoftTargetLossForward(loss, probability.data(), target.data(), &actual.value);
    SoftTargetLossTerms(loss, probability.data(), target.data(), actual.terms.data());
    SoftTargetLossBackward(loss, &two, probability.data(), target.data(), actual.dx.data());
    EXPECT_NEAR(actual.value, expected.value, 1e-6f * std::fabs(expected.value));
    ExpectClose(expected.terms, actual.terms, 1e-6f, "terms");
    ExpectClose(expected.dx, actual.dx, 1e-6f, "gradient");
  }
}

TEST(SoftTargets, EqualPlainSums) {
  for (const Case& one : Cases()) {
    const SoftmaxLoss& loss = one.loss;
    const ClassAxis& axis = loss.axis;
    const std::vector<float> probability = Probabilities(axis), target = Targets(axis);
    std::vector<float> terms, dx(probability.size()), actual_terms = Poison(axis.positions());
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < axis.positions(); ++i) {
      double weight = 0, term = 0;
      const double of_position = loss.weights[i];
      const auto weighted = [&](int64_t c) {
        return double{target[At(axis, i, c)]} * (loss.class_weight ? loss.class_weight[c] : 1);
      };
      for (int64_t c = 0; c < axis.classes; ++c) weight += weighted(c);
      for (int64_t c = 0; c < axis.classes; ++c) {
        const double p = probability[At(axis, i, c)];
        const double wanted = (1 - loss.smoothing) * weighted(c) + loss.smoothing / axis.classes * weight;
        term -= of_position * wanted * std::log(p);
        dx[At(axis, i, c)] = static_cast<float>(0.5 * of_position * (weight * p - wanted));
      }
      terms.push_back(static_cast<float>(term));
      sum += term;
      weights += weight;
    }
    const double divisor = loss.normalizer > 0 ? static_cast<double>(loss.normalizer) : weights;
    for (float& gradient : dx) gradient /= static_cast<float>(divisor);
    float value = 0;
    const float half = 0.5f;
    std::vector<float> in_place = probability;
    SoftTargetLossForward(loss, probability.data(), target.data(), &value);
    SoftTargetLossTerms(loss, probability.data(), target.data(), actual_terms.data());
    SoftTargetLossBackward(loss, &half, in_place.data(), target.data(), in_place.data());
    EXPECT_NEAR(value, sum / divisor, 1e-6 * sum / divisor);
    ExpectClose(terms, actual_terms, 1e-6f, "terms");
    ExpectClose(dx, in_place, 2e-6f, "gradient");
  }
}

TEST(SoftTargets, FindsTheFirstBadOne) {
  std::vector<float> targets(100000, 0.25f);
  targets[7] = 0;
  targets[8] = 3;
  targets[9] = FLT_MAX;
  const auto count = static_cast<int64_t>(targets.size());
  EXPECT_EQ(FindBadTarget(count, targets.data()), -1);
  EXPECT_EQ(FindBadTarget(0, targets.data()), -1);
  for (const float bad : {-1e-30f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> some = targets;
    some[99999] = some[60000] = some[20001] = bad;
    EXPECT_EQ(FindBadTarget(count, some.data()), 20001);
  }
}

}  // namespace
}  // namespace crema
