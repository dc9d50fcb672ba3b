#include "ops/normalization/normalization.h"

#include <gtest/gtest.h>

#include "comparison.h"

namespace crema {
namespace {

// Caffe's loops, in double.
void PlainMvn(const MvnProblem& p, const std::vector<float>& x, const std::vector<float>& dy, std::vector<float>* y,
              std::vector<float>* dx) {
  for (int64_t row = 0; row < p.rows; ++row) {
    const float *from = &x[row * p.width], *above = &dy[row * p.width];
    const double n = static_cast<double>(p.width);
    double mean = 0, variance = 0, sum = 0, products = 0;
    for (int64_t i = 0; i < p.width; ++i) mean += from[i] / n;
    for (int64_t i = 0; i < p.width; ++i) variance += (from[i] - mean) * (from[i] - mean) / n;
    const double by = p.divide ? std::sqrt(variance) + p.eps : 1;
    const auto standard = [&](int64_t i) { return (from[i] - mean) / by; };
    for (int64_t i = 0; i < p.width; ++i) {
      sum += above[i];
      if (p.divide) products += above[i] * standard(i);
    }
    for (int64_t i = 0; i < p.width; ++i) {
      y->push_back(static_cast<float>(standard(i)));
      dx->push_back(static_cast<float>((above[i] - (standard(i) * products + sum) / n) / by));
    }
  }
}

TEST(Mvn, IsCaffes) {
  for (const MvnProblem& p : {MvnProblem{7, 5, true, 0.5f}, MvnProblem{3, 1000, true, 1e-9f},
                              MvnProblem{2, 70001, true, 0.25f}, MvnProblem{2, 1500000, false, 0}}) {
    std::vector<float> x = RandomValues(p.rows * p.width, 1), dy = RandomValues(p.rows * p.width, 2);
    for (float& value : x) value += 100;
    for (float& value : dy) value += 0.5f;
    std::vector<float> expected_y, expected_dx, y(x.size()), dx(x.size()), inverse(p.rows);
    PlainMvn(p, x, dy, &expected_y, &expected_dx);
    MvnForward(p, x.data(), y.data(), inverse.data());
    MvnBackward(p, y.data(), inverse.data(), dy.data(), dx.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(y[i], expected_y[i], 2e-5) << p.width << ", " << i;
      ASSERT_NEAR(dx[i], expected_dx[i], 2e-5) << p.width << ", " << i;
    }
    MvnForward(p, x.data(), x.data(), nullptr);
    EXPECT_EQ(x, y);
    MvnBackward(p, y.data(), inverse.data(), dy.data(), dy.data());
    EXPECT_EQ(dy, dx);
  }
}

// The definition, in double.
struct PlainNormalize {
  PlainNormalize(const NormalizeProblem& p, const std::vector<float>& x, const std::vector<float>& scale,
                 const std::vector<float>& dy)
      : y(x.size()), dx(x.size()), gradient(p.scales()) {
    std::vector<double> squares(p.vectors(), p.eps), dot(p.vectors()), sums(p.scales());
    const auto visit = [&](const auto& body) {
      for (int64_t i = 0; i < p.count(); ++i) {
        const int64_t n = i / (p.channels * p.pixels);
        body(i, p.shared ? 0 : i / p.pixels % p.channels, p.whole ? n : n * p.pixels + i % p.pixels);
      }
    };
    visit([&](int64_t i, int64_t, int64_t v) { squares[v] += double{x[i]} * x[i]; });
    visit([&](int64_t i, int64_t c, int64_t v) { dot[v] += double{scale[c]} * x[i] * dy[i]; });
    visit([&](int64_t i, int64_t c, int64_t v) {
      const double length = std::sqrt(squares[v]);
      y[i] = static_cast<float>(scale[c] * x[i] / length);
      dx[i] = static_cast<float>((scale[c] * dy[i] - x[i] * dot[v] / squares[v]) / length);
      sums[c] += dy[i] * x[i] / length;
    });
    gradient.assign(sums.begin(), sums.end());
  }
  std::vector<float> y, dx, gradient;
};

TEST(Normalize, IsTheDefinition) {
  for (const bool whole : {false, true}) {
    for (const bool shared : {false, true}) {
      for (NormalizeProblem p : {NormalizeProblem{2, 3, 5}, NormalizeProblem{70, 40, 1}, NormalizeProblem{1, 3, 40000},
                                 NormalizeProblem{3, 65, 131}, NormalizeProblem{1, 90000, 1}}) {
        p.whole = whole;
        p.shared = shared;
        std::vector<float> x = RandomValues(p.count(), 1), dy = RandomValues(p.count(), 2);
        const std::vector<float> scale = RandomValues(p.scales(), 3);
        const PlainNormalize expected(p, x, scale, dy);
        std::vector<float> y(x.size()), dx(x.size()), inverse(p.vectors()), gradient(p.scales());
        NormalizeForward(p, x.data(), scale.data(), y.data(), inverse.data());
        NormalizeBackward(p, x.data(), scale.data(), inverse.data(), dy.data(), dx.data(), gradient.data());
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_NEAR(y[i], expected.y[i], 1e-5) << whole << shared << p.pixels << ", " << i;
          ASSERT_NEAR(dx[i], expected.dx[i], 1e-4) << whole << shared << p.pixels << ", " << i;
        }
        for (size_t i = 0; i < gradient.size(); ++i) {
          ASSERT_NEAR(gradient[i], expected.gradient[i], 1e-4) << whole << shared << p.pixels << ", " << i;
        }
        NormalizeBackward(p, x.data(), scale.data(), inverse.data(), dy.data(), dy.data(), nullptr);
        EXPECT_EQ(dy, dx);
        NormalizeForward(p, x.data(), scale.data(), x.data(), nullptr);
        EXPECT_EQ(x, y);
      }
    }
  }
}

}  // namespace
}  // namespace crema
