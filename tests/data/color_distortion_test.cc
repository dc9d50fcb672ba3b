#include "data/transforms/color_distortion.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/image_testing.h"

namespace crema {
namespace {

using Pixel = std::array<int, 3>;  // blue, green, red

ColorDistortion MakeDistortion(const std::string& text) {
  DistortionParameter param;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &param));
  return ColorDistortion(param);
}

Pixel Distorted(const ColorDistortion& distortion, const Pixel& pixel, const RandomStream& random) {
  Image image;
  image.Resize(1, 1, 3);
  for (size_t c = 0; c < 3; ++c) image.pixels[c] = static_cast<uint8_t>(pixel[c]);
  distortion.Apply(random, 0, {0, 0, 1, 1}, &image);
  return {image.pixels[0], image.pixels[1], image.pixels[2]};
}

// In double precision, hues in degrees.
Pixel ShiftedHue(const Pixel& pixel, double degrees) {
  const double high = *std::max_element(pixel.begin(), pixel.end());
  const double low = *std::min_element(pixel.begin(), pixel.end()), range = high - low;
  const double b = pixel[0], g = pixel[1], r = pixel[2];
  double hue = high == r ? (g - b) / range : high == g ? 2 + (b - r) / range : 4 + (r - g) / range;
  if (hue < 0) hue += 6;
  hue = std::max(0.0, hue + degrees / 60);
  const auto channel = [&](double offset) {
    const double k = std::fmod(hue + offset, 6);
    return static_cast<int>(std::lround(high - range * std::clamp(std::min(k, 4 - k), 0.0, 1.0)));
  };
  return {channel(1), channel(3), channel(5)};
}

TEST(ColorDistortion, StepsByHand) {
  const RandomStream random(3, 5);
  EXPECT_FALSE(ColorDistortion().changes());
  EXPECT_EQ(Distorted(MakeDistortion(""), {1, 2, 3}, random), (Pixel{1, 2, 3}));
  const auto contrast = MakeDistortion("contrast_prob: 1 contrast_lower: 1.5 contrast_upper: 1.5");
  EXPECT_EQ(Distorted(contrast, {10, 101, 200}, random), (Pixel{15, 152, 255}));
  const auto grey = MakeDistortion("saturation_prob: 1");
  EXPECT_EQ(Distorted(grey, {10, 20, 200}, random), (Pixel{200, 200, 200}));
  const auto vivid = MakeDistortion("saturation_prob: 1 saturation_lower: 2 saturation_upper: 2");
  EXPECT_EQ(Distorted(vivid, {100, 200, 200}, random), (Pixel{1, 200, 200}));  // 127 of 255, doubled
  EXPECT_EQ(Distorted(vivid, {7, 7, 7}, random), (Pixel{7, 7, 7}));
  const float shift = -40 + 80 * random.Uniform(2);
  const int moved = static_cast<int>(std::lrint(100 + shift));
  EXPECT_EQ(Distorted(MakeDistortion("brightness_prob: 1 brightness_delta: 40"), {100, 0, 255}, random),
            (Pixel{moved, std::max(0, moved - 100), std::min(255, moved + 155)}));
}

TEST(ColorDistortion, HuesTurnAndStopAtRed) {
  const auto hue = MakeDistortion("hue_prob: 1 hue_delta: 18");
  for (uint64_t i = 0; i < 200; ++i) {
    const RandomStream random(1, i);
    const double degrees = 2 * (-18 + 36 * random.Uniform(8));
    const Pixel pixel = {static_cast<int>(random.Below(100, 256)), static_cast<int>(random.Below(101, 256)),
                         static_cast<int>(random.Below(102, 256))};
    const auto [low, high] = std::minmax_element(pixel.begin(), pixel.end());
    if (*high - *low < 20) continue;
    const Pixel now = Distorted(hue, pixel, random), expected = ShiftedHue(pixel, degrees);
    // Hues are rounded to two degrees, saturations to a 255th.
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(now[c], expected[c], 3 + (*high - *low) / 25) << i;
  }
}

TEST(ColorDistortion, HappensAsOftenAsItIsAskedFor) {
  const auto distortion = MakeDistortion("brightness_prob: 0.5 brightness_delta: 32 random_order_prob: 0.3");
  int brighter = 0, reordered = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Pixel now = Distorted(distortion, {50, 100, 150}, RandomStream(2, i));
    const int sum = now[0] + now[1] + now[2];
    brighter += sum != 300;
    reordered += !(now[0] < now[1] && now[1] < now[2]);
  }
  EXPECT_NEAR(brighter, 1000, 100);
  EXPECT_NEAR(reordered, 500, 70);  // of six orders one changes nothing
}

TEST(ColorDistortion, ChangesTheAreaOnly) {
  Image image = testing::Photograph(6, 8);
  const Image before = image;
  MakeDistortion("contrast_prob: 1").Apply(RandomStream(1, 1), 0, {1, 2, 3, 4}, &image);
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 24; ++x) {
      const bool inside = y >= 1 && y < 4 && x >= 6 && x < 18;
      EXPECT_EQ(image.row(y)[x], inside ? 0 : before.row(y)[x]);
    }
  }
}

}  // namespace
}  // namespace crema
