#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace crema {
namespace {

// Distance of `value` from `exact` in units in the last place of float.
double Ulps(float value, double exact) {
  const float rounded = std::fabs(static_cast<float>(exact));
  const double unit = static_cast<double>(std::nextafter(rounded, std::numeric_limits<float>::infinity())) - rounded;
  return std::fabs(value - exact) / unit;
}

struct Exponential {
  CREMA_FORMULA float operator()(float x) const { return formula::Exp(x); }
};

Tensor Whole(std::vector<float>& values) {
  return Tensor(values.data(), {Shape{static_cast<int64_t>(values.size())}, DType::kF32});
}

// Runs a formula through the vectorised loop, which may round otherwise than a single call.
template <typename Formula>
std::vector<float> Apply(const Formula& formula, std::vector<float> x) {
  std::vector<float> y(x.size());
  Map(formula, Whole(y), Whole(x));
  return y;
}

TEST(Functors, ExpIsWithinOneUnitOfTheExactValue) {
  std::vector<float> x;
  for (double v = -87.3; v < 88.72; v += 1.7e-4) x.push_back(static_cast<float>(v));
  const std::vector<float> y = Apply(Exponential{}, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, Ulps(y[i], std::exp(static_cast<double>(x[i]))));
  EXPECT_LT(worst, 1.01);
}

TEST(Functors, ExpHandlesTheEndsOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> y =
      Apply(Exponential{}, {0.0f, -0.0f, 88.73f, infinity, -infinity, -104.0f, -1e30f, 1e30f, -100.0f, std::nanf("")});
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1.0f);
  EXPECT_EQ(y[2], infinity);
  EXPECT_EQ(y[3], infinity);
  EXPECT_EQ(y[4], 0.0f);
  EXPECT_EQ(y[5], 0.0f);
  EXPECT_EQ(y[6], 0.0f);
  EXPECT_EQ(y[7], infinity);
  EXPECT_NEAR(y[8] / std::exp(-100.0), 1.0, 0.02);  // below the normal range: few digits are left
  EXPECT_TRUE(std::isnan(y[9]));
}

TEST(Functors, TanhIsAccurateFromTheTiniestArgumentsOn) {
  std::vector<float> x;
  for (float v = 1e-30f; v < 20; v *= 1.0003f) {
    x.push_back(v);
    x.push_back(-v);
  }
  const std::vector<float> y = Apply(formula::HyperbolicTangent{}, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, Ulps(y[i], std::tanh(static_cast<double>(x[i]))));
  EXPECT_LT(worst, 3.0);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ends = Apply(formula::HyperbolicTangent{}, {infinity, -infinity, -0.0f, std::nanf("")});
  EXPECT_EQ(ends[0], 1.0f);
  EXPECT_EQ(ends[1], -1.0f);
  EXPECT_TRUE(std::signbit(ends[2]));
  EXPECT_TRUE(std::isnan(ends[3]));
}

TEST(Functors, ReluKeepsNotANumber) {
  EXPECT_TRUE(std::isnan(Apply(formula::Relu{}, {std::nanf("")})[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::LeakyRelu{0.1f}, {std::nanf("")})[0]));
}

}  // namespace
}  // namespace crema
