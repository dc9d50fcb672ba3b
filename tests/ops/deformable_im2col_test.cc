#include "ops/convolution/deformable_im2col.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace crema {
namespace {

// What a loss makes of a pixel that is no number is none either, and belongs to no pixel of the image; so with what
// others make of one that is 0.
TEST(DeformableIm2col, GradientsOfUnknownPixelsStayThere) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool fades : {false, true}) {
    for (const float outside : {0.0f, nan}) {
      if (fades && outside != 0) continue;
      DeformableIm2colProblem problem = {.channels = 1, .rows = {1, 1, 1, 0, 1, 1}, .columns = {3, 1, 1, 0, 1, 3}};
      problem.fades = fades;
      problem.across_first = true;
      problem.outside = outside;
      const std::vector<float> image = {1, 3, 7}, offsets = {0.5f, 5, -1, 0, 0, 0};  // across, then down
      std::vector<float> columns(3), gradient(3), slopes(6);
      DeformableIm2col(problem, image.data(), offsets.data(), nullptr, columns.data());
      EXPECT_EQ(columns[0], 2);
      EXPECT_EQ(std::isnan(columns[1]), std::isnan(outside));
      EXPECT_EQ(columns[2], 3);
      const std::vector<float> given = {1, nan, 10};
      DeformableCol2im(problem, given.data(), offsets.data(), nullptr, gradient.data());
      EXPECT_EQ(gradient, (std::vector<float>{0.5f, 10.5f, 0}));
      DeformableOffsetGradient(problem, given.data(), image.data(), offsets.data(), nullptr, slopes.data(), nullptr);
      EXPECT_EQ(slopes[0], 2);
      EXPECT_EQ(slopes[1], 0);
      EXPECT_EQ(slopes[2], 40);
      EXPECT_EQ(slopes[4], 0);
    }
  }
}

// Nor do factors have a part in what lies outside, nor pixels in what they have no share of.
TEST(DeformableIm2col, InfiniteGradientsStayWhereTheyBelong) {
  const float infinity = std::numeric_limits<float>::infinity();
  DeformableIm2colProblem problem = {.channels = 1, .rows = {1, 1, 1, 0, 1, 1}, .columns = {3, 1, 1, 0, 1, 3}};
  problem.across_first = true;
  const std::vector<float> image = {1, 3, 7}, offsets = {0, 5, 0, 0, 0, 0}, factors = {1, 1, 1};
  const std::vector<float> given = {1, infinity, infinity};
  std::vector<float> gradient(3), of_factors(3);
  DeformableCol2im(problem, given.data(), offsets.data(), factors.data(), gradient.data());
  EXPECT_EQ(gradient, (std::vector<float>{1, 0, infinity}));
  DeformableOffsetGradient(problem, given.data(), image.data(), offsets.data(), factors.data(), nullptr,
                           of_factors.data());
  EXPECT_EQ(of_factors, (std::vector<float>{1, 0, infinity}));
}

}  // namespace
}  // namespace crema
