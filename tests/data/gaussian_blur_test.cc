#include "data/transforms/gaussian_blur.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "data/augmentation_testing.h"
#include "data/image_testing.h"

namespace crema {
namespace {

using testing::Apply;
using testing::Photograph;
using testing::StreamOf;

constexpr uint64_t kBlur = 132;  // whether, and the number behind it: how much

// In double precision; beyond the border the image is mirrored about its outermost pixels.
double Blurred(const Image& image, double sigma, int y, int x, int c) {
  const auto mirrored = [](int i, int count) {
    while (i < 0 || i >= count) i = count == 1 ? 0 : i < 0 ? -i : 2 * (count - 1) - i;
    return i;
  };
  const int reach = static_cast<int>(std::ceil(3 * sigma));
  double sum = 0, weights = 0;
  for (int v = -reach; v <= reach; ++v) {
    for (int u = -reach; u <= reach; ++u) {
      const double weight = std::exp(-(v * v + u * u) / (2 * sigma * sigma));
      weights += weight;
      sum += weight * image.row(mirrored(y + v, image.height))[mirrored(x + u, image.width) * image.channels + c];
    }
  }
  return sum / weights;
}

TEST(GaussianBlur, IsThatOfAFormula) {
  BlurBuffers buffers;
  for (const auto& [height, width] : {std::pair(12, 17), {1, 1}, {1, 20}, {20, 1}, {2, 3}}) {
    for (const int channels : {1, 2, 3}) {
      const Image image = Photograph(height, width, channels);
      for (const double sigma : {0.1, 0.4, 1.0, 2.0, 5.0}) {
        Image blurred;
        BlurGaussian(image, sigma, &buffers, &blurred);
        for (int i = 0; i < height * width * channels; ++i) {
          const int c = i % channels, x = i / channels % width, y = i / channels / width;
          ASSERT_NEAR(blurred.pixels[static_cast<size_t>(i)], Blurred(image, sigma, y, x, c), 0.56)
              << height << "x" << width << ", sigma " << sigma;
        }
      }
    }
  }
}

TEST(GaussianBlur, LeavesOneColorAlone) {
  BlurBuffers buffers;
  Image image, blurred;
  image.Resize(9, 11, 3);
  for (const double sigma : {0.01, 0.7, 3.0, 11.0, 32.0}) {
    for (const uint8_t value : {0, 1, 128, 254, 255}) {
      std::fill(image.pixels.begin(), image.pixels.end(), value);
      BlurGaussian(image, sigma, &buffers, &blurred);
      EXPECT_EQ(std::count(blurred.pixels.begin(), blurred.pixels.end(), value), 9 * 11 * 3) << sigma;
    }
  }
}

TEST(GaussianBlur, ActsAsOftenAndAsMuchAsItSays) {
  GaussianBlurParameter param;
  param.set_probability(0.3f);
  param.set_max_sigma(1.5f);
  const GaussianBlur blur(param);
  int times = 0;
  double least = 9, most = 0, sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const double sigma = blur.Draw(RandomStream(3, i), kBlur);
    if (sigma == 0) continue;
    ++times;
    least = std::min(least, sigma);
    most = std::max(most, sigma);
    sum += sigma;
  }
  EXPECT_NEAR(times, 3000, 200);
  EXPECT_GE(least, 0.1f);
  EXPECT_LE(most, 1.5f);
  EXPECT_NEAR(sum / times, 0.8, 0.03);
}

// The part that is seen, mirrored; other draws stay as they are.
TEST(GaussianBlur, IsOfWhatIsSeenInTrain) {
  const Image image = Photograph(30, 41);
  TransformationParameter plain;
  plain.set_crop_size(20);
  plain.set_mirror(true);
  plain.set_mirror_vertical(true);
  TransformationParameter param = plain;
  param.mutable_gaussian_blur()->set_min_sigma(1);
  int blurred = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> before = Apply(Transform(plain, TRAIN, ""), image, seed),
                             behind = Apply(Transform(param, TRAIN, ""), image, seed);
    EXPECT_EQ(Apply(Transform(param, TEST, ""), image, seed), Apply(Transform(plain, TEST, ""), image, seed));
    const double sigma = GaussianBlur(param.gaussian_blur()).Draw(StreamOf(seed), kBlur);
    if (sigma == 0) {
      EXPECT_EQ(behind, before);
      continue;
    }
    ++blurred;
    Image seen, expected;
    seen.Resize(20, 20, 3);
    for (int i = 0; i < 1200; ++i) seen.pixels[i % 400 * 3 + i / 400] = static_cast<uint8_t>(before[i]);
    BlurBuffers buffers;
    BlurGaussian(seen, sigma, &buffers, &expected);
    for (int i = 0; i < 1200; ++i) ASSERT_EQ(behind[i], expected.pixels[i % 400 * 3 + i / 400]);
  }
  EXPECT_NEAR(blurred, 10, 6);
}

// Colours change before, and are rounded then.
TEST(GaussianBlur, IsBehindColors) {
  for (const int channels : {1, 3}) {
    const Image image = Photograph(21, 23, channels);
    TransformationParameter colors, blur, both;
    colors.mutable_color_jitter()->set_brightness(0.5f);
    colors.mutable_color_jitter()->set_contrast(0.5f);
    colors.mutable_color_jitter()->set_hue(0.5f);
    blur.mutable_gaussian_blur()->set_probability(1);
    both = blur;
    *both.mutable_color_jitter() = colors.color_jitter();
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const std::vector<float> changed = Apply(Transform(colors, TRAIN, ""), image, seed);
      Image rounded;
      rounded.Resize(21, 23, channels);
      const int pixels = 21 * 23;
      for (int i = 0; i < pixels * channels; ++i) {
        rounded.pixels[i % pixels * channels + i / pixels] = static_cast<uint8_t>(std::lrint(changed[i]));
      }
      const std::vector<float> expected = Apply(Transform(blur, TRAIN, ""), rounded, seed),
                               out = Apply(Transform(both, TRAIN, ""), image, seed);
      for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1);
    }
  }
}

// What the net sees as 0 stays so.
TEST(GaussianBlur, LeavesTheBorderAlone) {
  const Image image = Photograph(12, 12);
  TransformationParameter param;
  param.set_pad(3);
  for (const float mean : {10.3f, 100.7f, 300.0f}) param.add_mean_value(mean);
  param.mutable_gaussian_blur()->set_probability(1);
  const std::vector<float> out = Apply(Transform(param, TRAIN, ""), image, 1);
  for (int i = 0; i < 3 * 18 * 18; ++i) {
    const int x = i % 18, y = i / 18 % 18;
    if (x < 3 || x >= 15 || y < 3 || y >= 15) {
      ASSERT_EQ(out[i], 0);
    }
  }
}

TEST(GaussianBlur, TakesAnyChannelsAndNoFloats) {
  TransformationParameter param;
  param.mutable_gaussian_blur()->set_probability(1);
  const Transform transform(param, TRAIN, "");
  EXPECT_EQ(Apply(transform, Photograph(6, 7, 2), 1).size(), 84u);
  EXPECT_NE(transform.Check({1, 2, 2}, Transform::Values::kFloats).find("leave gaussian_blur out"), std::string::npos);
  EXPECT_EQ(Transform(param, TEST, "").Check({1, 2, 2}, Transform::Values::kFloats), "");
}

}  // namespace
}  // namespace crema
