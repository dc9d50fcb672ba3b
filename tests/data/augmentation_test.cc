// What only TRAIN does to images: mirroring top and bottom, erasing, all at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "crema/blob.pb.h"
#include "data/augmentation_testing.h"
#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/transforms/transform.h"

namespace crema {
namespace {

using testing::Apply;
using testing::ApplyToLabels;
using testing::kErased;
using testing::kErases;
using testing::kMirrorVertical;
using testing::Photograph;
using testing::StreamOf;

std::vector<float> UpsideDown(std::vector<float> planes, int height, int width) {
  const auto rows = static_cast<int64_t>(planes.size()) / width;
  for (int64_t begin = 0; begin < rows; begin += height) {
    for (int64_t y = 0; y < height / 2; ++y) {
      std::swap_ranges(planes.begin() + (begin + y) * width, planes.begin() + (begin + y + 1) * width,
                       planes.begin() + (begin + height - 1 - y) * width);
    }
  }
  return planes;
}

TransformationParameter Everything() {
  TransformationParameter param;
  param.set_mirror_vertical(true);
  param.set_max_rotation_angle(30);
  param.mutable_random_erasing()->set_probability(1);
  param.mutable_rand_augment();
  param.mutable_gaussian_blur()->set_probability(1);
  param.mutable_color_jitter()->set_hue(0.5f);
  return param;
}

TEST(Augmentation, NothingHappensInTest) {
  const Image image = Photograph(20, 30);
  TransformationParameter param;
  param.set_crop_size(16);
  param.set_mirror(true);
  param.add_mean_value(100);
  TransformationParameter all = Everything();
  all.MergeFrom(param);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(Apply(Transform(all, TEST, ""), image, seed), Apply(Transform(param, TEST, ""), image, seed));
  }
  const std::vector<float> floats(600, 3);
  EXPECT_EQ(Transform(all, TEST, "").Check({1, 20, 30}, Transform::Values::kFloats), "");
  EXPECT_NE(Transform(all, TRAIN, "").Check({1, 20, 30}, Transform::Values::kFloats).find("max_rotation_angle"),
            std::string::npos);
}

// Other draws stay as they are: what is cut out where, mirrored, coloured.
TEST(Augmentation, MirrorsTopAndBottomOfHalfTheImages) {
  TemporaryFolder folder;
  BlobProto mean;
  for (const int extent : {3, 20, 30}) mean.mutable_shape()->add_dim(extent);
  for (int i = 0; i < 1800; ++i) mean.add_data(static_cast<float>(i % 77));
  testing::WriteFile(folder / "mean", mean.SerializeAsString());
  const Image image = Photograph(20, 30);
  TransformationParameter crop, whole, random, padded, with_mean;
  crop.set_crop_size(16);
  crop.set_mirror(true);
  random = with_mean = padded = crop;
  random.mutable_random_resized_crop();
  random.mutable_color_jitter()->set_contrast(0.5f);
  padded.set_pad(9);
  padded.add_mean_value(40);
  with_mean.set_mean_file("mean");
  for (TransformationParameter param : {crop, whole, random, padded, with_mean}) {
    const Transform plain(param, TRAIN, folder / "mean");
    param.set_mirror_vertical(true);
    const Transform mirrored(param, TRAIN, folder / "mean");
    const int height = param.crop_size() > 0 ? 16 : 20, width = param.crop_size() > 0 ? 16 : 30;
    int times = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const bool turns = StreamOf(seed).Below(kMirrorVertical, 2) == 1;
      const std::vector<float> expected = Apply(plain, image, seed);
      EXPECT_EQ(Apply(mirrored, image, seed), turns ? UpsideDown(expected, height, width) : expected);
      times += turns;
    }
    EXPECT_NEAR(times, 20, 10);
  }
  // Labels with them, and the border of theirs.
  padded.clear_mean_value();
  const Image labels = Photograph(20, 30, 1);
  TransformationParameter param = padded;
  param.set_mirror_vertical(true);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> expected = ApplyToLabels(Transform(padded, TRAIN, ""), labels, seed);
    EXPECT_EQ(ApplyToLabels(Transform(param, TRAIN, ""), labels, seed),
              StreamOf(seed).Below(kMirrorVertical, 2) == 1 ? UpsideDown(expected, 16, 16) : expected);
  }
}

TEST(Augmentation, MirrorsFloatsTopAndBottom) {
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  TransformationParameter param;
  param.set_mirror_vertical(true);
  const Transform transform(param, TRAIN, "");
  std::set<std::vector<float>> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> out(6);
    transform.Apply(floats.data(), {1, 3, 2}, StreamOf(seed), out.data());
    seen.insert(out);
  }
  EXPECT_EQ(seen, (std::set<std::vector<float>>{floats, {5, 6, 3, 4, 1, 2}}));
}

TEST(Augmentation, ErasesARectangleOfWhatTheNetSees) {
  const Image image = Photograph(40, 60);
  TransformationParameter plain;
  plain.set_crop_size(32);
  plain.set_mirror(true);
  plain.add_mean_value(300);  // nothing is 0 but what is erased
  plain.mutable_color_jitter()->set_brightness(0.2f);
  for (const float probability : {0.0f, 0.3f, 1.0f}) {
    TransformationParameter param = plain;
    param.mutable_random_erasing()->set_probability(probability);
    const Transform transform(param, TRAIN, "");
    int erased = 0;
    double shares = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      std::vector<float> expected = Apply(Transform(plain, TRAIN, ""), image, seed);
      if (StreamOf(seed).Uniform(kErases) < probability) {
        const auto area = RandomArea(param.random_erasing()).Try(32, 32, StreamOf(seed), kErased);
        ASSERT_TRUE(area);
        const double share = static_cast<double>(area->height) * area->width / (32 * 32);
        const double aspect = static_cast<double>(area->width) / area->height;
        EXPECT_NEAR(share, 0.175, 0.18);
        EXPECT_GT(aspect, 0.2);
        EXPECT_LT(aspect, 5);
        shares += share;
        ++erased;
        for (int c = 0; c < 3; ++c) {
          for (int y = area->top; y < area->top + area->height; ++y) {
            for (int x = area->left; x < area->left + area->width; ++x) expected[(c * 32 + y) * 32 + x] = 0;
          }
        }
      }
      ASSERT_EQ(Apply(transform, image, seed), expected);
    }
    EXPECT_NEAR(erased, 400 * probability, 40);
    if (erased > 0) {
      EXPECT_NEAR(shares / erased, 0.17, 0.03);
    }
  }
}

TEST(Augmentation, ErasingLeavesLabelsAloneAndTakesFloats) {
  const Image image = Photograph(12, 12, 1);
  TransformationParameter param;
  param.mutable_random_erasing()->set_probability(1);
  // Cutout's squares.
  for (const auto set : {&RandomErasingParameter::set_min_area, &RandomErasingParameter::set_max_area}) {
    (param.mutable_random_erasing()->*set)(0.25f);
  }
  for (const auto set : {&RandomErasingParameter::set_min_aspect, &RandomErasingParameter::set_max_aspect}) {
    (param.mutable_random_erasing()->*set)(1);
  }
  const Transform transform(param, TRAIN, "");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(ApplyToLabels(transform, image, seed), std::vector<float>(image.pixels.begin(), image.pixels.end()));
    const std::vector<float> floats(144, 7);
    EXPECT_EQ(transform.Check({1, 12, 12}, Transform::Values::kFloats), "");
    std::vector<float> out(144);
    transform.Apply(floats.data(), {1, 12, 12}, StreamOf(seed), out.data());
    EXPECT_EQ(std::count(out.begin(), out.end(), 0.0f), 36);
    EXPECT_EQ(std::count(out.begin(), out.end(), 7.0f), 108);
  }
  // No square of that area lies within.
  const std::vector<float> floats(40, 7);
  std::vector<float> out(40);
  transform.Apply(floats.data(), {1, 2, 20}, StreamOf(1), out.data());
  EXPECT_EQ(out, floats);
}

// Any fields at once, any size: no value is left out, none is written behind the end, and no check fails.
TEST(Augmentation, AnyFieldsAndSizesGoTogether) {
  const std::pair<int, int> sizes[] = {{1, 1}, {1, 2}, {2, 1}, {3, 2000}, {2000, 3}, {17, 23}, {64, 64}, {40, 300}};
  int accepted = 0, turned_small = 0;
  for (uint64_t round = 0; round < 600; ++round) {
    const RandomStream random(round, 77);
    uint64_t number = 0;
    const auto below = [&](uint64_t n) { return random.Below(number++, n); };
    const auto [height, width] = sizes[below(std::size(sizes))];
    const int channels = std::array{1, 2, 3}[below(3)];
    TransformationParameter param;
    if (below(2) == 0) param.set_max_rotation_angle(std::array{0.001f, 10.0f, 90.0f, 180.0f}[below(4)]);
    param.set_mirror(below(2) == 0);
    param.set_mirror_vertical(below(2) == 0);
    if (below(2) == 0) param.set_crop_size(std::array{1u, 2u, 7u, 32u, 65u}[below(5)]);
    if (below(3) == 0) param.set_pad(std::array{1u, 5u, 40u}[below(3)]);
    switch (below(4)) {
      case 0:
        param.set_resize_height(std::array{1u, 9u, 50u}[below(3)]);
        param.set_resize_width(std::array{1u, 6u, 80u}[below(3)]);
        break;
      case 1:
        param.set_resize_shorter_side(std::array{1u, 20u}[below(2)]);
    }
    if (below(4) == 0 && param.crop_size() > 0) param.mutable_random_resized_crop();
    if (below(2) == 0) {
      param.mutable_random_erasing()->set_probability(1);
      param.mutable_random_erasing()->set_max_area(1);
      param.mutable_random_erasing()->set_max_aspect(100);
    }
    if (below(3) == 0 && channels != 2) {
      param.mutable_color_jitter()->set_brightness(0.5f);
      param.mutable_color_jitter()->set_contrast(1);
      param.mutable_color_jitter()->set_hue(0.5f);
    }
    if (below(3) == 0 && channels != 2) {
      if (below(2) == 0) {
        param.mutable_rand_augment()->set_operations(5);
        param.mutable_rand_augment()->set_magnitude(30);
      } else {
        param.mutable_trivial_augment();
      }
    }
    if (below(3) == 0) param.mutable_gaussian_blur()->set_max_sigma(4);
    SCOPED_TRACE(std::to_string(height) + "x" + std::to_string(width) + "x" + std::to_string(channels) + ": " +
                 param.ShortDebugString());
    const Transform transform(param, TRAIN, "");
    const ImageSize size{channels, height, width};
    if (!transform.Check(size).empty()) continue;
    ++accepted;
    // As exactly in memory as a file that is decoded.
    const Image image = Photograph(height, width, channels, round);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      for (const float value : Apply(transform, image, seed)) {
        ASSERT_GE(value, 0);
        ASSERT_LE(value, 255);
      }
      const Image labels = Photograph(height, width, 1, round);
      for (const float label : ApplyToLabels(transform, labels, seed)) ASSERT_TRUE(label >= 0 && label <= 255);
      // As JPEGs may be decoded.
      if (!transform.cuts_random_areas()) continue;
      for (const int reduction : {2, 8}) {
        const Image reduced =
            Photograph((height + reduction - 1) / reduction, (width + reduction - 1) / reduction, channels, round);
        std::vector<float> out(transform.OutputSize(size).count(), -1);
        TransformScratch scratch;
        transform.Apply(reduced, StreamOf(seed), &scratch, out.data(), {reduction, {height, width}});
        ASSERT_GE(*std::min_element(out.begin(), out.end()), 0);
        turned_small += param.max_rotation_angle() > 0;
      }
    }
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(turned_small, 20);
}

}  // namespace
}  // namespace crema
