#include "ops/arrays/elementwise.h"

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

TEST(Functors, GeluGradientIsAStepFarFromZero) {
  const std::vector<float> x = {15.9f, 1e5f, 2e13f, 1e30f, std::numeric_limits<float>::max()};
  for (const float value : x) {
    EXPECT_EQ(formula::GeluGradient()(2.0f, value), 2.0f) << value;
    EXPECT_EQ(formula::GeluGradient()(2.0f, -value), 0.0f) << value;
    EXPECT_EQ(formula::GeluTanhGradient()(2.0f, value), 2.0f) << value;
    EXPECT_EQ(formula::GeluTanhGradient()(2.0f, -value), 0.0f) << value;
  }
  EXPECT_TRUE(std::isnan(formula::GeluTanhGradient()(1.0f, std::nanf(""))));
}

// Their limits, as those of ReLU.
template <typename Formula, typename Gradient>
void ExpectLimits(const Formula& formula, const Gradient& gradient) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(formula(-infinity), 0.0f);
  EXPECT_EQ(formula(-1e30f), 0.0f);
  EXPECT_EQ(formula(infinity), infinity);
  EXPECT_EQ(gradient(2.0f, -infinity), 0.0f);
  EXPECT_EQ(gradient(2.0f, infinity), 2.0f);
  EXPECT_TRUE(std::isnan(formula(std::nanf(""))));
  EXPECT_TRUE(std::isnan(gradient(2.0f, std::nanf(""))));
}

TEST(Functors, GatedOnesOfMinusInfinityAreZero) {
  ExpectLimits(formula::HardSwish{}, formula::HardSwishGradient{});
  ExpectLimits(formula::Mish{}, formula::MishGradient{});
  ExpectLimits(formula::Gelu{}, formula::GeluGradient{});
  ExpectLimits(formula::GeluTanh{}, formula::GeluTanhGradient{});
  for (const float beta : {0.1f, 1.0f, 1.5f, 300.0f}) {
    ExpectLimits(formula::Swish{beta}, formula::SwishGradient{beta});
  }
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
double NormalDensity(double x) { return 0.39894228040143267794 * std::exp(-0.5 * x * x); }

// From `least` to 15, and values of all magnitudes around 0.
std::vector<float> Sweep(double least) {
  std::vector<float> x;
  for (double v = least; v < 15; v += 1e-4) x.push_back(static_cast<float>(v));
  for (float v = 1e-36f; v < 1; v *= 1.01f) {
    x.push_back(v);
    x.push_back(-v);
  }
  return x;
}

// Of a value that falls as e^(-x^2 / 2): the exponent's rounding grows with it.
double TailError(double x) { return x < -5 ? 2e-4 : 3e-7 + 1e-7 * x * x; }

TEST(Functors, GeluIsAccurateFarIntoItsTail) {
  const std::vector<float> x = Sweep(-12.9);
  const std::vector<float> y = Apply(formula::Gelu{}, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], exact = v * NormalCdf(v);
    ASSERT_LE(std::fabs(y[i] - exact), std::fabs(exact) * (v < 0 ? TailError(v) : 3e-7)) << v;
  }
}

TEST(Functors, GradientOfGeluIsAccurateFarIntoItsTail) {
  const std::vector<float> x = Sweep(-12.9);
  std::vector<float> ones(x.size(), 1.0f), known = x, slopes(x.size());
  Map(formula::GeluGradient{}, Whole(slopes), Whole(ones), Whole(known));
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], exact = NormalCdf(v) + v * NormalDensity(v);
    ASSERT_LE(std::fabs(slopes[i] - exact), 1.5e-7) << v;
    if (v > -1) continue;  // it is 0 not far from there
    ASSERT_LE(std::fabs(slopes[i] - exact), std::fabs(exact) * (TailError(v) + 3e-7)) << v;
  }
}

TEST(Functors, SigmoidAndSwishAreAccurateFarIntoTheirTails) {
  const std::vector<float> x = Sweep(-86);
  const std::vector<float> gates = Apply(formula::Sigmoid{}, x), y = Apply(formula::Swish{1}, x);
  std::vector<float> ones(x.size(), 1.0f), known = x, slopes(x.size());
  Map(formula::SwishGradient{1}, Whole(slopes), Whole(ones), Whole(known));
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], gate = 1 / (1 + std::exp(-v)), slope = gate * (1 + v * (1 - gate));
    ASSERT_LE(Ulps(gates[i], gate), 2.5) << v;
    ASSERT_LE(std::fabs(y[i] - v * gate), std::fabs(v * gate) * 3e-7) << v;
    ASSERT_LE(std::fabs(slopes[i] - slope), 1e-6) << v;
    if (v > -2) continue;  // it is 0 not far from there
    ASSERT_LE(std::fabs(slopes[i] - slope), std::fabs(slope) * 2e-6) << v;
  }
}

TEST(Functors, SigmoidIsZeroAndOneFarFromZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> y =
      Apply(formula::Sigmoid{}, {-infinity, -1e30f, -104.0f, -88.7f, 88.7f, 1e30f, infinity, std::nanf("")});
  for (const int i : {0, 1, 2}) EXPECT_EQ(y[i], 0.0f) << i;
  EXPECT_LE(y[3], std::numeric_limits<float>::min());
  for (const int i : {4, 5, 6}) EXPECT_EQ(y[i], 1.0f) << i;
  EXPECT_TRUE(std::isnan(y[7]));
}

TEST(Functors, SwishOfNegativeBetaHasItsTailAboveZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> y = Apply(formula::Swish{-1}, {-infinity, -100.0f, -1.0f, 100.0f, infinity});
  EXPECT_EQ(y[0], -infinity);
  EXPECT_EQ(y[1], -100.0f);
  EXPECT_FLOAT_EQ(y[2], -0.731058579f);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_EQ(y[4], 0.0f);
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

struct RaisedTo {
  float exponent;
  CREMA_FORMULA float operator()(float x) const { return formula::Power(x, exponent); }
};

TEST(Functors, PowersAreWithinOneUnitOfTheExactValue) {
  std::vector<float> x;
  for (float v = std::numeric_limits<float>::min(); v < std::numeric_limits<float>::max() / 2; v *= 1.001f) {
    x.push_back(v);
  }
  for (float v = 0.5f; v < 2.0f; v *= 1.00001f) x.push_back(v);  // where high powers are neither 0 nor infinite
  for (const float exponent : {0.5f, 0.75f, -0.25f, 1.0f, -1.0f, 3.0f, -7.5f, 0.001f, 100.0f, -130.0f}) {
    const std::vector<float> y = Apply(RaisedTo{exponent}, x);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::pow(static_cast<double>(x[i]), static_cast<double>(exponent));
      if (exact > std::numeric_limits<float>::max()) {
        ASSERT_EQ(y[i], std::numeric_limits<float>::infinity()) << x[i] << " to the power of " << exponent;
      } else if (exact < std::numeric_limits<float>::min()) {
        ASSERT_NEAR(y[i], exact, std::numeric_limits<float>::denorm_min()) << x[i] << " to the power of " << exponent;
      } else {
        worst = std::max(worst, Ulps(y[i], exact));
      }
    }
    EXPECT_LT(worst, 1.0) << exponent;
  }
}

TEST(Functors, PowersOfWhatIsNotPositiveAreThoseOfTheMathLibrary) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0.0f,     -0.0f,     1.0f,   -1.0f,   -2.0f,    -0.3f,
                                infinity, -infinity, 1e-40f, -1e-40f, -3.4e38f, std::nanf("")};
  for (const float exponent : {0.0f, 1.0f, 2.0f, 3.0f, -1.0f, -2.0f, -3.0f, 0.5f, -0.5f, 2.5f, 16777216.0f}) {
    const std::vector<float> y = Apply(RaisedTo{exponent}, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const float expected = std::pow(x[i], exponent);
      const std::string what = std::to_string(x[i]) + " to the power of " + std::to_string(exponent);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[i])) << what << " is " << y[i];
      } else {
        EXPECT_FLOAT_EQ(y[i], expected) << what;
        EXPECT_EQ(std::signbit(y[i]), std::signbit(expected)) << what;
      }
    }
  }
}

struct NaturalLogarithm {
  CREMA_FORMULA float operator()(float x) const { return formula::Log(x); }
};

TEST(Functors, LogIsWithinOneUnitOfTheExactValue) {
  std::vector<float> x;
  for (float v = std::numeric_limits<float>::min(); v < std::numeric_limits<float>::max() / 2; v *= 1.0001f) {
    x.push_back(v);
  }
  for (float v = 0.5f; v < 2; v += 1.7e-6f) x.push_back(v);
  for (float v = 0.999f; v < 1.001f; v = std::nextafter(v, 2.0f)) x.push_back(v);
  const std::vector<float> y = Apply(NaturalLogarithm{}, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 1) worst = std::max(worst, Ulps(y[i], std::log(static_cast<double>(x[i]))));
  }
  EXPECT_LT(worst, 1.0);
}

TEST(Functors, LogHandlesTheEndsOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1.0f,   0.0f,   -0.0f,         infinity, -infinity, -1.0f,
                                1e-40f, 1e-45f, std::nanf(""), 3e38f,    -1e-40f,   1.1754944e-38f};
  const std::vector<float> y = Apply(NaturalLogarithm{}, x);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], -infinity);
  EXPECT_EQ(y[2], -infinity);
  EXPECT_EQ(y[3], infinity);
  for (const int i : {4, 5, 8, 10}) EXPECT_TRUE(std::isnan(y[i])) << x[i];
  for (const int i : {6, 7, 9, 11}) EXPECT_LT(Ulps(y[i], std::log(static_cast<double>(x[i]))), 2.0) << x[i];
}

TEST(Functors, BnllIsAccurateFromTheTiniestResultsOn) {
  std::vector<float> x;
  for (double v = -86; v < 90; v += 1e-3) x.push_back(static_cast<float>(v));
  const std::vector<float> y = Apply(formula::Bnll{}, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    worst = std::max(worst, Ulps(y[i], std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v)))));
  }
  EXPECT_LT(worst, 3.0);
  EXPECT_EQ(Apply(formula::Bnll{}, {1e30f})[0], 1e30f);
  EXPECT_EQ(Apply(formula::Bnll{}, {-1e30f})[0], 0.0f);
}

TEST(Functors, EluIsAccurateFromTheTiniestArgumentsOn) {
  std::vector<float> x;
  for (float v = 1e-30f; v < 100; v *= 1.0003f) x.push_back(-v);
  const std::vector<float> y = Apply(formula::Elu{1}, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, Ulps(y[i], std::expm1(static_cast<double>(x[i]))));
  EXPECT_LT(worst, 2.0);
}

TEST(Functors, PowersAreThoseOfTheLibrary) {
  const std::vector<float> x = {-8, -1, 0, 2, 9};
  EXPECT_EQ(Apply(formula::PowerOfLinear{1, 0, 3}, x), (std::vector<float>{-512, -1, 0, 8, 729}));
  const std::vector<float> roots = Apply(formula::PowerOfLinear{1, 0, 0.5f}, x);
  EXPECT_TRUE(std::isnan(roots[0]));
  EXPECT_TRUE(std::isnan(roots[1]));
  EXPECT_EQ(roots[2], 0.0f);
  EXPECT_EQ(roots[4], 3.0f);
}

TEST(Functors, KeepNotANumber) {
  const std::vector<float> nan = {std::nanf("")};
  EXPECT_TRUE(std::isnan(Apply(formula::Relu{}, nan)[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::LeakyRelu{0.1f}, nan)[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::Elu{1}, nan)[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::Absolute{}, nan)[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::Bnll{}, nan)[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::Clip{-1, 1}, nan)[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::Square{1, 0}, nan)[0]));
  EXPECT_TRUE(std::isnan(Apply(formula::Exponential{1, 1}, nan)[0]));
}

}  // namespace
}  // namespace crema
