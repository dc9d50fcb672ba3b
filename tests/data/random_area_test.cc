#include "data/transforms/random_area.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "crema/data.pb.h"

namespace crema {
namespace {

TEST(RandomArea, AreasAndAspectsAreSpreadAsAskedFor) {
  RandomResizedCropParameter param;
  const RandomArea area(param);
  constexpr int kDraws = 10000, kHeight = 375, kWidth = 500;
  double areas = 0, aspects = 0, least = 1, most = 0, low = 10, high = 0, top = 0, left = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const ImageArea drawn = area.Draw(kHeight, kWidth, RandomStream(7, i), 6);
    ASSERT_GE(drawn.top, 0);
    ASSERT_GE(drawn.left, 0);
    ASSERT_LE(drawn.top + drawn.height, kHeight);
    ASSERT_LE(drawn.left + drawn.width, kWidth);
    const double share = static_cast<double>(drawn.height) * drawn.width / (kHeight * kWidth);
    const double aspect = static_cast<double>(drawn.width) / drawn.height;
    areas += share / kDraws;
    aspects += std::log(aspect) / kDraws;
    least = std::min(least, share);
    most = std::max(most, share);
    low = std::min(low, aspect);
    high = std::max(high, aspect);
    if (drawn.height < kHeight) top += static_cast<double>(drawn.top) / (kHeight - drawn.height) / kDraws;
    left += drawn.width < kWidth ? static_cast<double>(drawn.left) / (kWidth - drawn.width) / kDraws : 0.5 / kDraws;
  }
  // Evenly drawn on [0.08, 1] the mean is 0.54; large areas that do not fit are drawn again, which gives 0.43.
  EXPECT_NEAR(areas, 0.43, 0.01);
  EXPECT_NEAR(aspects, 0, 0.05);
  EXPECT_NEAR(top, 0.5, 0.03);
  EXPECT_NEAR(left, 0.5, 0.03);
  EXPECT_GT(least, 0.075);
  EXPECT_LT(least, 0.1);
  EXPECT_GT(most, 0.95);
  EXPECT_GT(low, 0.73);
  EXPECT_LT(high, 1.36);
  EXPECT_LT(low, 0.78);
  EXPECT_GT(high, 1.3);
}

TEST(RandomArea, WhatNeverFitsComesFromTheCentre) {
  RandomResizedCropParameter param;
  param.set_min_area(1);
  EXPECT_EQ(RandomArea(param).Draw(100, 400, RandomStream(1, 1), 6), (ImageArea{0, 133, 100, 133}));
  EXPECT_EQ(RandomArea(param).Draw(400, 100, RandomStream(1, 1), 6), (ImageArea{133, 0, 133, 100}));
  const ImageArea least = RandomArea(RandomResizedCropParameter()).Draw(1, 1, RandomStream(1, 1), 6);
  EXPECT_EQ(least, (ImageArea{0, 0, 1, 1}));
}

}  // namespace
}  // namespace crema
