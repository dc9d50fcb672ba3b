#include "data/transforms/color_jitter.h"

#include <gtest/gtest.h>

#include "data/image_testing.h"

namespace crema {
namespace {

TEST(ColorJitter, FactorsAreEvenWithinTheirRange) {
  ColorJitterParameter param;
  param.set_brightness(0.4f);
  param.set_saturation(0.2f);
  const Image image = testing::Photograph(2, 2);
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const ColorChange change = ColorJitter(param).Draw(image, {0, 0, 2, 2}, RandomStream(3, i), 3);
    EXPECT_GE(change.brightness, 0.6f);
    EXPECT_LE(change.brightness, 1.4f);
    EXPECT_EQ(change.contrast, 1);
    EXPECT_GE(change.saturation, 0.8f);
    EXPECT_LE(change.saturation, 1.2f);
    sum += change.brightness - 1;
    squares += (change.brightness - 1) * (change.brightness - 1);
  }
  EXPECT_NEAR(sum / 10000, 0, 0.01);
  EXPECT_NEAR(squares / 10000, 0.16 / 3, 0.002);
}

}  // namespace
}  // namespace crema
