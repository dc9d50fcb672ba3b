#include "ops/losses/loss_formulas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace crema {
namespace {

constexpr double kUnit = 0x1p-24;

TEST(LossFormulas, LogOfOneAndIsNearlyExact) {
  for (int i = 0; i <= 100000; ++i) {
    const float u = static_cast<float>(i) / 100000.0f;
    const double exact = std::log1p(static_cast<double>(u));
    ASSERT_LE(std::fabs(formula::LogOfOneAnd(u) - exact), 4 * kUnit * exact) << u;
  }
  for (float u = 1; u > 1e-35f; u *= 0.7f) {
    const double exact = std::log1p(static_cast<double>(u));
    ASSERT_LE(std::fabs(formula::LogOfOneAnd(u) - exact), 4 * kUnit * exact) << u;
  }
}

TEST(LossFormulas, ThatAreNoNumberStaySo) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(formula::SigmoidTerm{{}}(nan, 1)));
  EXPECT_TRUE(std::isnan(formula::DifferenceTerm{{}}(nan, 1)));
  EXPECT_TRUE(std::isnan(formula::HingeTerm{true}(nan, true)));
  EXPECT_TRUE(std::isnan((formula::ContrastiveTerm{1, false}(0, nan))));
  EXPECT_TRUE(std::isnan((formula::ContrastiveTerm{1, false}(nan, 9))));
  EXPECT_TRUE(std::isnan(formula::TripletViolation{1}(nan)));
  EXPECT_TRUE(std::isnan(formula::WeightedBy<formula::SigmoidTerm>{}(nan, 1, 1)));
  EXPECT_TRUE(std::isnan(formula::WeightedBy<formula::SigmoidTerm>{}(1, nan, 1)));
  EXPECT_TRUE(std::isnan(formula::ProbabilityLoss(nan)));
}

TEST(LossFormulas, OfWeightZeroAreZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(formula::WeightedBy<formula::SigmoidTerm>{}(0, nan, 1), 0);
}

TEST(LossFormulas, BalanceWeighsBothKindsAlike) {
  const formula::BalancedBy<formula::SigmoidTermGradient> gradient = {{}, formula::BalanceOf({}, 1, 3)};
  EXPECT_EQ(gradient(0, 1), 0.75f * -0.5f);
  EXPECT_EQ(gradient(0, 0), 0.25f * 0.5f);
  EXPECT_EQ(gradient(0, 2), 0) << "no target that counts";
  const SigmoidBalance none = formula::BalanceOf({}, 0, 0);
  EXPECT_EQ(none.of_ones, 0);
  EXPECT_EQ(none.of_zeros, 0);
}

}  // namespace
}  // namespace crema
