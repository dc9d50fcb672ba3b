#include "ops/losses/softmax.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "ops/losses/classification.h"

namespace crema {
namespace {

std::vector<float> Generic(int64_t n, float scale) {
  const RandomStream random(1, 2);
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[i] = (2 * random.Uniform(i) - 1) * scale;
  return values;
}

TEST(Softmax, EqualsPlainLoops) {
  struct Case {
    int64_t outer, classes, inner;
  };
  for (const Case c : {Case{3, 10, 1}, Case{200, 1000, 1}, Case{2, 21, 300}, Case{5, 4, 2}, Case{4, 1, 7},
                       Case{1, 2, 128}, Case{1, 3, 129}, Case{31, 2, 1}, Case{100, 31, 1}, Case{70, 32, 1}}) {
    ClassAxis axis(Shape{c.outer, c.classes, c.inner}, 1);
    const int64_t n = c.outer * c.classes * c.inner;
    const std::vector<float> x = Generic(n, 30), dy = Generic(n, 1);
    std::vector<float> y(n), dx(n);
    SoftmaxForward(axis, x.data(), y.data());
    SoftmaxBackward(axis, y.data(), dy.data(), dx.data());
    for (int64_t p = 0; p < axis.positions(); ++p) {
      const auto at = [&](int64_t k) { return (p / c.inner * c.classes + k) * c.inner + p % c.inner; };
      double sum = 0, dot = 0;
      for (int64_t k = 0; k < c.classes; ++k) sum += std::exp(static_cast<double>(x[at(k)]));
      for (int64_t k = 0; k < c.classes; ++k) dot += std::exp(static_cast<double>(x[at(k)])) / sum * dy[at(k)];
      for (int64_t k = 0; k < c.classes; ++k) {
        const double expected = std::exp(static_cast<double>(x[at(k)])) / sum;
        ASSERT_NEAR(y[at(k)], expected, 1e-6 + 1e-5 * expected);
        ASSERT_NEAR(dx[at(k)], expected * (dy[at(k)] - dot), 2e-6);
      }
    }
  }
}

TEST(Softmax, OtherRowsAndThreadsDoNotChangeBits) {
  const int64_t rows = 2000;
  for (const int64_t classes : {2, 21, 50}) {
    const std::vector<float> x = Generic(rows * classes, 30);
    std::vector<float> together(x.size()), alone(x.size());
    SoftmaxForward(ClassAxis(Shape{rows, classes}, 1), x.data(), together.data());
    for (int64_t row = 0; row < rows; ++row) {
      SoftmaxForward(ClassAxis(Shape{1, classes}, 1), x.data() + row * classes, alone.data() + row * classes);
    }
    EXPECT_EQ(together, alone) << classes;
  }
}

void CompareLoss(const float* class_weight, float smoothing, float focal_gamma) {
  SoftmaxLoss problem;
  problem.axis = ClassAxis(Shape{7, 5, 6}, 1);
  problem.rule = {true, 3};
  problem.class_weight = class_weight;
  problem.smoothing = smoothing;
  problem.focal_gamma = focal_gamma;
  std::vector<float> probability = Generic(7 * 5 * 6, 1), label(7 * 6), dx(7 * 5 * 6);
  for (float& p : probability) p = std::fabs(p);
  for (size_t i = 0; i < label.size(); ++i) label[i] = static_cast<float>(i * 7 % 5);
  double loss = 0, weights = 0;
  std::vector<double> expected(7 * 5 * 6);
  for (int64_t o = 0; o < 7; ++o) {
    for (int64_t i = 0; i < 6; ++i) {
      const int own = static_cast<int>(label[o * 6 + i]);
      if (own == 3) continue;
      const double weight = class_weight ? class_weight[own] : 1;
      weights += weight;
      for (int64_t k = 0; k < 5; ++k) {
        const double p = probability[(o * 5 + k) * 6 + i], target = smoothing / 5 + (k == own ? 1 - smoothing : 0);
        const double of_label = probability[(o * 5 + own) * 6 + i], missing = 1 - of_label;
        loss -= weight * target * std::pow(missing, focal_gamma) * std::log(p);
        const double factor = std::pow(missing, focal_gamma) -
                              focal_gamma * of_label * std::pow(missing, focal_gamma - 1) * std::log(of_label);
        expected[(o * 5 + k) * 6 + i] = 0.5 * weight * factor * (p - target);
      }
    }
  }
  const float half = 0.5f;
  for (const int64_t normalizer : {0, 11}) {
    problem.normalizer = normalizer;
    const double divided_by = normalizer > 0 ? normalizer : weights;
    float actual = 0;
    SoftmaxLossForward(problem, probability.data(), label.data(), &actual);
    EXPECT_NEAR(actual, loss / divided_by, 1e-5 * loss / divided_by);
    SoftmaxLossBackward(problem, &half, probability.data(), label.data(), dx.data());
    for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(dx[i] * divided_by, expected[i], 4e-6);
  }
  if (focal_gamma > 0) return;
  SoftmaxLossBackward(problem, &half, probability.data(), label.data(), probability.data());  // in place
  EXPECT_EQ(probability, dx);
}

TEST(Softmax, LossEqualsPlainLoops) {
  const std::vector<float> class_weight = {1, 0.5f, 4, 1, 0.25f};
  for (const float smoothing : {0.0f, 0.1f, 1.0f}) {
    CompareLoss(nullptr, smoothing, 0);
    CompareLoss(class_weight.data(), smoothing, 0);
  }
  for (const float focal_gamma : {0.5f, 1.0f, 2.0f}) {
    CompareLoss(nullptr, 0, focal_gamma);
    CompareLoss(class_weight.data(), 0, focal_gamma);
  }
}

// Where nothing is left to learn (1 - p is 0, and its powers below 0 have no end), and where nothing is right yet.
TEST(Softmax, FocalLossIsFiniteAtTheEnds) {
  SoftmaxLoss problem;
  problem.axis = ClassAxis(Shape{2, 2}, 1);
  problem.normalizer = 1;
  const std::vector<float> probability = {1, 0, 1, 0}, label = {0, 1};
  for (const float gamma : {0.5f, 2.0f}) {
    problem.focal_gamma = gamma;
    const float one = 1;
    float loss = 0;
    SoftmaxLossForward(problem, probability.data(), label.data(), &loss);
    EXPECT_NEAR(loss, -std::log(FLT_MIN), 1e-4);
    std::vector<float> dx(4);
    SoftmaxLossBackward(problem, &one, probability.data(), label.data(), dx.data());
    EXPECT_EQ(dx, (std::vector<float>{0, 0, 1, -1}));
  }
}

TEST(Softmax, BadLabelsAreFound) {
  const LabelRule none, ignore{true, -1};
  const std::vector<float> good = {0, 1, 2}, negative = {0, -1, 2}, large = {0, 1, 3}, fraction = {0.5f, 1, 2};
  EXPECT_EQ(FindBadLabel(none, 3, 3, good.data()), -1);
  EXPECT_EQ(FindBadLabel(none, 3, 3, negative.data()), 1);
  EXPECT_EQ(FindBadLabel(ignore, 3, 3, negative.data()), -1);
  EXPECT_EQ(FindBadLabel(none, 3, 3, large.data()), 2);
  EXPECT_EQ(FindBadLabel(ignore, 3, 3, fraction.data()), 0);
}

}  // namespace
}  // namespace crema
