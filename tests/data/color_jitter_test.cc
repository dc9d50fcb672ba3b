#include "data/transforms/color_jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/augmentation_testing.h"
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
    const ColorChange change = ColorJitter(param).Draw(image, {0, 0, 2, 2}, RandomStream(3, i), 3, 131);
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

// Through HSV, in double precision.
void ShiftHueByHand(double turns, double* b, double* g, double* r) {
  const double value = std::max({*b, *g, *r}), range = value - std::min({*b, *g, *r});
  if (range == 0) return;
  double hue = (value == *r ? (*g - *b) / range : value == *g ? 2 + (*b - *r) / range : 4 + (*r - *g) / range) / 6;
  hue += turns;
  hue = 6 * (hue - std::floor(hue));
  const double within = hue - std::floor(hue), low = value - range, falling = value - range * within,
               rising = low + range * within;
  const double colors[6][3] = {{low, rising, value},  {low, value, falling}, {rising, value, low},
                               {value, falling, low}, {value, low, rising},  {falling, low, value}};
  const auto& color = colors[static_cast<int>(std::floor(hue)) % 6];
  *b = color[0];
  *g = color[1];
  *r = color[2];
}

TEST(ColorJitter, HuesAreShiftedBehindTheOtherChanges) {
  const Image image = testing::Photograph(9, 35);
  TransformationParameter param;
  param.mutable_color_jitter()->set_brightness(0.4f);
  param.mutable_color_jitter()->set_contrast(0.4f);
  param.mutable_color_jitter()->set_saturation(0.9f);
  TransformationParameter with_hue = param;
  with_hue.mutable_color_jitter()->set_hue(0.5f);
  double least = 1, most = -1;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<float> before = testing::Apply(Transform(param, TRAIN, ""), image, seed),
                             behind = testing::Apply(Transform(with_hue, TRAIN, ""), image, seed);
    const double turns = 0.5 * (2.0 * testing::StreamOf(seed).Uniform(131) - 1);
    least = std::min(least, turns);
    most = std::max(most, turns);
    for (size_t i = 0; i < 315; ++i) {
      double b = before[i], g = before[i + 315], r = before[i + 630];
      ShiftHueByHand(turns, &b, &g, &r);
      ASSERT_NEAR(behind[i], b, 0.01);
      ASSERT_NEAR(behind[i + 315], g, 0.01);
      ASSERT_NEAR(behind[i + 630], r, 0.01);
    }
    EXPECT_EQ(testing::Apply(Transform(with_hue, TEST, ""), image, seed),
              testing::Apply(Transform(param, TEST, ""), image, seed));
  }
  EXPECT_LT(least, -0.4);
  EXPECT_GT(most, 0.4);
}

// Any colour by any shift, on the borders between sixths of the circle, too.
TEST(ColorJitter, HuesGoRoundTheCircle) {
  Image image;
  image.Resize(6, 36, 3);
  const int levels[] = {0, 1, 100, 200, 254, 255};
  for (size_t i = 0; i < 216; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      image.pixels[3 * i + c] = static_cast<uint8_t>(levels[i / (c == 0 ? 1 : c == 1 ? 6 : 36) % 6]);
    }
  }
  TransformationParameter param;
  param.mutable_color_jitter()->set_hue(0.5f);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> out = testing::Apply(Transform(param, TRAIN, ""), image, seed);
    for (size_t i = 0; i < 216; ++i) {
      double b = image.pixels[3 * i], g = image.pixels[3 * i + 1], r = image.pixels[3 * i + 2];
      ShiftHueByHand(0.5 * (2.0 * testing::StreamOf(seed).Uniform(131) - 1), &b, &g, &r);
      ASSERT_NEAR(out[i], b, 0.01);
      ASSERT_NEAR(out[i + 216], g, 0.01);
      ASSERT_NEAR(out[i + 432], r, 0.01);
    }
  }
}

TEST(ColorJitter, GreyImagesHaveNoHue) {
  const Image image = testing::Photograph(9, 9, 1);
  TransformationParameter param;
  param.mutable_color_jitter()->set_hue(0.5f);
  EXPECT_EQ(testing::Apply(Transform(param, TRAIN, ""), image, 1),
            std::vector<float>(image.pixels.begin(), image.pixels.end()));
}

}  // namespace
}  // namespace crema
