#include "ops/normalization/group_norm.h"

#include <gtest/gtest.h>

#include "comparison.h"
#include "near.h"

namespace crema {
namespace {

// The definition, in double.
struct PlainGroupNorm {
  PlainGroupNorm(const GroupNormProblem& p, const std::vector<float>& x, const std::vector<float>& scale,
                 const std::vector<float>& shift, const std::vector<float>& dy)
      : y(x.size()), dx(x.size()) {
    std::vector<double> products(p.scales()), sums(p.scales());
    const double n = static_cast<double>(p.width());
    for (int64_t row = 0; row < p.rows(); ++row) {
      double mean = 0, variance = 0, of_gradient = 0, of_product = 0;
      const auto at = [&](int64_t i) { return static_cast<size_t>(row * p.width() + i); };
      const auto channel = [&](int64_t i) { return static_cast<size_t>(row % p.groups * p.channels + i / p.pixels); };
      for (int64_t i = 0; i < p.width(); ++i) mean += x[at(i)] / n;
      for (int64_t i = 0; i < p.width(); ++i) variance += (x[at(i)] - mean) * (x[at(i)] - mean) / n;
      const double inverse = 1 / std::sqrt(variance + p.eps);
      const auto standard = [&](int64_t i) { return (x[at(i)] - mean) * inverse; };
      for (int64_t i = 0; i < p.width(); ++i) {
        y[at(i)] = static_cast<float>(standard(i) * scale[channel(i)] + shift[channel(i)]);
        products[channel(i)] += dy[at(i)] * standard(i);
        sums[channel(i)] += dy[at(i)];
        of_gradient += double{scale[channel(i)]} * dy[at(i)] / n;
        of_product += scale[channel(i)] * dy[at(i)] * standard(i) / n;
      }
      for (int64_t i = 0; i < p.width(); ++i) {
        dx[at(i)] =
            static_cast<float>((scale[channel(i)] * dy[at(i)] - of_gradient - standard(i) * of_product) * inverse);
      }
    }
    scale_gradient.assign(products.begin(), products.end());
    shift_gradient.assign(sums.begin(), sums.end());
  }
  std::vector<float> y, dx, scale_gradient, shift_gradient;
};

TEST(GroupNorm, IsTheDefinition) {
  for (const GroupNormProblem& p :
       {GroupNormProblem{300, 1, 192, 1}, GroupNormProblem{1, 1, 5, 1}, GroupNormProblem{2, 1, 70001, 1},
        GroupNormProblem{4, 3, 50, 1}, GroupNormProblem{3, 4, 2, 35, 0.5f}, GroupNormProblem{2, 2, 3, 30000},
        GroupNormProblem{5, 6, 1, 100}}) {
    SCOPED_TRACE(std::to_string(p.rows()) + " x " + std::to_string(p.channels) + " x " + std::to_string(p.pixels));
    std::vector<float> x = RandomValues(p.rows() * p.width(), 1), dy = RandomValues(p.rows() * p.width(), 2);
    const std::vector<float> scale = RandomValues(p.scales(), 3), shift = RandomValues(p.scales(), 4);
    for (float& value : x) value += 100;
    for (float& value : dy) value += 0.5f;
    const PlainGroupNorm plain(p, x, scale, shift, dy);
    std::vector<float> y(x.size()), dx(x.size()), scale_gradient(scale.size()), shift_gradient(scale.size());
    std::vector<RowMoments> moments(static_cast<size_t>(p.rows()));
    GroupNormForward(p, x.data(), scale.data(), shift.data(), y.data(), moments.data());
    const GroupNormGradients gradients = {dx.data(), scale_gradient.data(), shift_gradient.data()};
    std::vector<std::byte> workspace(GroupNormBackwardWorkspace(p));
    GroupNormBackward(p, x.data(), scale.data(), moments.data(), dy.data(), gradients, workspace.data());
    ExpectNear(plain.y, y, 2e-5, "y");
    ExpectNear(plain.dx, dx, 2e-5, "dx");
    const double of_sums = 1e-4 + 3e-8 * static_cast<double>(p.images * p.pixels);  // whose terms cancel
    ExpectNear(plain.scale_gradient, scale_gradient, of_sums, "scale");
    ExpectNear(plain.shift_gradient, shift_gradient, of_sums, "shift");

    std::vector<float> again = dy, one(scale.size());
    GroupNormBackward(p, x.data(), scale.data(), moments.data(), again.data(), {.dx = again.data()}, workspace.data());
    EXPECT_EQ(again, dx);
    GroupNormBackward(p, x.data(), scale.data(), moments.data(), dy.data(), {.scale = one.data()}, workspace.data());
    EXPECT_EQ(one, scale_gradient);
    GroupNormForward(p, x.data(), scale.data(), shift.data(), x.data(), nullptr);
    EXPECT_EQ(x, y);
  }
}

TEST(GroupNorm, ScaleAndShiftMayBeLeftOut) {
  const GroupNormProblem p = {3, 2, 4, 5};
  const std::vector<float> x = RandomValues(p.rows() * p.width(), 1), dy = RandomValues(p.rows() * p.width(), 2);
  const std::vector<float> ones(p.scales(), 1.0f), zeros(p.scales());
  const PlainGroupNorm plain(p, x, ones, zeros, dy);
  std::vector<float> y(x.size()), dx(x.size());
  std::vector<RowMoments> moments(static_cast<size_t>(p.rows()));
  GroupNormForward(p, x.data(), ones.data(), nullptr, y.data(), nullptr);
  ExpectNear(plain.y, y, 1e-5, "without a shift");
  GroupNormForward(p, x.data(), nullptr, nullptr, y.data(), moments.data());
  ExpectNear(plain.y, y, 1e-5, "without both");
  std::vector<std::byte> workspace(GroupNormBackwardWorkspace(p));
  GroupNormBackward(p, x.data(), nullptr, moments.data(), dy.data(), {.dx = dx.data()}, workspace.data());
  ExpectNear(plain.dx, dx, 1e-5, "without both");
}

}  // namespace
}  // namespace crema
