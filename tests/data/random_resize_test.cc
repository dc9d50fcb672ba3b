#include "data/transforms/random_resize.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "crema/blob.pb.h"
#include "crema/error.h"
#include "data/data_testing.h"
#include "data/transforms/transform.h"

namespace crema {
namespace {

TransformationParameter Sizes(uint32_t lower, uint32_t upper, uint32_t crop) {
  TransformationParameter param;
  param.set_img_rand_resize_lower(lower);
  param.set_img_rand_resize_upper(upper);
  param.set_crop_size(crop);
  return param;
}

ImageExtent Draw(const TransformationParameter& param, int height, int width, uint64_t seed) {
  return RandomResize::Of(param)->Draw(height, width, RandomStream(seed, 3), 0);
}

TEST(RandomResize, IsThereWhereAFieldAsksForIt) {
  TransformationParameter param;
  param.set_crop_size(4);
  param.set_allow_upscale(true);
  EXPECT_FALSE(RandomResize::Of(param));
  param.set_horizontal_stretch_upper(1.5f);
  EXPECT_TRUE(RandomResize::Of(param));
  RandomResize::Clear(&param);
  EXPECT_FALSE(RandomResize::Of(param));
}

TEST(RandomResize, DrawsTheShorterSideAndKeepsProportions) {
  const TransformationParameter param = Sizes(40, 43, 8);
  std::set<int> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ImageExtent size = Draw(param, 100, 150, seed), turned = Draw(param, 150, 100, seed);
    seen.insert(size.height);
    EXPECT_EQ(size.width, std::lround(1.5 * size.height));
    EXPECT_EQ(turned.width, size.height);
    EXPECT_EQ(turned.height, size.width);
  }
  EXPECT_EQ(seen, (std::set<int>{40, 41, 42, 43}));
}

TEST(RandomResize, DrawsProportions) {
  TransformationParameter param = Sizes(50, 50, 8);
  param.set_rand_resize_ratio_lower(1.2f);
  param.set_rand_resize_ratio_upper(1.6f);
  std::set<bool> wide;
  std::set<int> longer;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const ImageExtent tall = Draw(param, 300, 200, seed), square = Draw(param, 200, 200, seed);
    EXPECT_EQ(tall.width, 50);
    longer.insert(tall.height);
    wide.insert(square.width > square.height);
    EXPECT_EQ(std::min(square.width, square.height), 50);
  }
  EXPECT_EQ(*longer.begin(), 60);
  EXPECT_EQ(*longer.rbegin(), 80);
  EXPECT_EQ(longer.size(), 21u);
  EXPECT_EQ(wide.size(), 2u);
}

TEST(RandomResize, StretchesWithinTheImage) {
  TransformationParameter param = Sizes(0, 0, 30);
  param.set_vertical_stretch_lower(0.5f);
  param.set_vertical_stretch_upper(2);
  std::set<int> capped, free;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    param.set_allow_upscale(false);
    const ImageExtent size = Draw(param, 40, 60, seed);
    EXPECT_EQ(size.width, 60);
    capped.insert(size.height);
    param.set_allow_upscale(true);
    free.insert(Draw(param, 40, 60, seed).height);
  }
  // No shorter than what is cut out, no longer than it was.
  EXPECT_EQ(*capped.begin(), 30);
  EXPECT_EQ(*capped.rbegin(), 40);
  EXPECT_EQ(*free.begin(), 30);
  EXPECT_GE(*free.rbegin(), 79);
}

std::vector<uint8_t> Planes(const ImageSize& size) {
  const std::string data = testing::ImageDatum(size.channels, size.height, size.width, 11).data();
  return {data.begin(), data.end()};
}

std::vector<float> Apply(const Transform& transform, const ImageSize& size, uint64_t seed) {
  std::vector<float> out(transform.OutputSize(size).count());
  TransformScratch scratch;
  transform.Apply(Planes(size).data(), size, RandomStream(seed, 5), &scratch, out.data());
  return out;
}

TEST(RandomResize, OfOneSizeIsThatSize) {
  const ImageSize size{3, 40, 30};
  TransformationParameter param = Sizes(20, 20, 16), same;
  same.set_resize_shorter_side(20);
  same.set_crop_size(16);
  for (const Phase phase : {TRAIN, TEST}) {
    const Transform random(param, phase, ""), fixed(same, phase, "");
    EXPECT_EQ(random.OutputSize(size), (ImageSize{3, 16, 16}));
    EXPECT_EQ(random.Check(size), "");
    for (uint64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(Apply(random, size, seed), Apply(fixed, size, seed));
  }
  param.set_img_rand_resize_upper(28);
  const Transform random(param, TEST, "");
  std::set<std::vector<float>> results;
  for (uint64_t seed = 0; seed < 50; ++seed) results.insert(Apply(random, size, seed));
  EXPECT_EQ(results.size(), 9u) << "one for each of 20 to 28";
}

TEST(RandomResize, SubtractsTheCentreOfTheMeanImage) {
  TemporaryFolder folder;
  BlobProto mean;
  for (const int extent : {3, 20, 22}) mean.mutable_shape()->add_dim(extent);
  for (int i = 0; i < 3 * 20 * 22; ++i) mean.add_data(static_cast<float>(i));
  testing::WriteFile(folder / "mean", mean.SerializeAsString());
  const ImageSize size{3, 40, 30};
  TransformationParameter param = Sizes(20, 24, 16);
  param.set_mirror(true);
  const Transform plain(param, TRAIN, "");
  param.set_mean_file("mean");
  const Transform centred(param, TRAIN, folder / "mean");
  EXPECT_EQ(centred.Check(size), "");
  std::set<bool> mirrored;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<float> expected = Apply(plain, size, seed);
    const bool mirrors = plain.Mirrors(RandomStream(seed, 5));
    mirrored.insert(mirrors);
    for (int c = 0, i = 0; c < 3; ++c) {
      for (int y = 0; y < 16; ++y) {
        for (int x = 0; x < 16; ++x, ++i) {
          expected[i] -= static_cast<float>((c * 20 + y + 2) * 22 + (mirrors ? 15 - x : x) + 3);
        }
      }
    }
    EXPECT_EQ(Apply(centred, size, seed), expected);
  }
  EXPECT_EQ(mirrored.size(), 2u);
  param.set_crop_size(21);
  EXPECT_NE(Transform(param, TRAIN, folder / "mean").Check(size).find("its centre of 3x21x21"), std::string::npos);
}

TEST(RandomResize, LabelsMoveAlong) {
  Image image;
  image.Resize(40, 30, 1);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 30; ++x) image.row(y)[x] = y < 20 ? 0 : 200;
  }
  TransformationParameter param = Sizes(18, 28, 16);
  param.set_mirror(true);
  const Transform transform(param, TRAIN, "");
  TransformScratch scratch;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<float> pixels(256), labels(256);
    transform.Apply(image, RandomStream(seed, 5), &scratch, pixels.data());
    transform.ApplyToLabels(image, RandomStream(seed, 5), &scratch, 255, labels.data());
    for (size_t i = 0; i < 256; ++i) {
      // The nearest pixel's, where all four are of one kind.
      if (pixels[i] == 0 || pixels[i] == 200) {
        EXPECT_EQ(labels[i], pixels[i]) << seed;
      }
    }
  }
}

TEST(RandomResize, SmallImagesAreRefused) {
  TransformationParameter param = Sizes(20, 24, 16);
  const std::string problem = Transform(param, TRAIN, "").Check({3, 15, 30});
  EXPECT_NE(problem.find("crop_size 16 exceeds the image, which is 3x15x30"), std::string::npos) << problem;
  EXPECT_NE(problem.find("allow_upscale: true"), std::string::npos) << problem;
  param.set_allow_upscale(true);
  EXPECT_EQ(Transform(param, TRAIN, "").Check({3, 15, 30}), "");
}

TEST(RandomResize, StripsThatWouldBecomeHugeAreRefused) {
  TransformationParameter param = Sizes(400, 500, 16);
  param.set_allow_upscale(true);
  const Transform transform(param, TRAIN, "");
  const std::string problem = transform.Check({3, 1, 10000});
  EXPECT_NE(problem.find("is 1x10000, which would be resized to 500x5000000"), std::string::npos) << problem;
  EXPECT_EQ(transform.Check({3, 1, 500}), "");
  param.set_allow_upscale(false);
  EXPECT_EQ(Transform(param, TRAIN, "").Check({3, 16, 10000}), "");
  param.set_allow_upscale(true);
  param.set_horizontal_stretch_upper(1e9f);
  EXPECT_EQ(RandomResize::Of(param)->Largest(20, 20).width, std::numeric_limits<int>::max());
}

TEST(RandomResize, LargestIsTheMostThatIsDrawn) {
  TransformationParameter param = Sizes(20, 50, 8);
  param.set_allow_upscale(true);
  param.set_rand_resize_ratio_lower(1.2f);
  param.set_rand_resize_ratio_upper(1.6f);
  param.set_vertical_stretch_upper(1.5f);
  const ImageExtent largest = RandomResize::Of(param)->Largest(30, 40);
  ImageExtent most;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const ImageExtent size = Draw(param, 30, 40, seed);
    most = {std::max(most.height, size.height), std::max(most.width, size.width)};
  }
  EXPECT_EQ(largest.height, 75);
  EXPECT_EQ(largest.width, 80);
  for (const int rest : {largest.height - most.height, largest.width - most.width}) {
    EXPECT_GE(rest, 0);
    EXPECT_LE(rest, 2);
  }
}

TEST(RandomResize, ContradictionsAreErrors) {
  const auto error = [](const std::string& more) {
    TransformationParameter param;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(more, &param));
    if (!param.has_crop_size()) param.set_crop_size(16);
    try {
      Transform(param, TRAIN, "");
      return std::string();
    } catch (const UserError& mistake) {
      return std::string(mistake.what());
    }
  };
  for (const auto& [more, expected] : std::vector<std::pair<std::string, std::string>>{
           {"img_rand_resize_lower: 5", "img_rand_resize_upper is 0 but must be in [1, "},
           {"img_rand_resize_lower: 50 img_rand_resize_upper: 40", "img_rand_resize_lower 50 exceeds"},
           {"rand_resize_ratio_lower: 0.5 rand_resize_ratio_upper: 2", "rand_resize_ratio_lower is 0.5 but must be"},
           {"vertical_stretch_lower: 0", "vertical_stretch_lower is 0 but must be in [0.01"},
           {"horizontal_stretch_upper: nan", "horizontal_stretch_upper is nan"},
           {"vertical_stretch_upper: 2 resize_shorter_side: 30", "vertical_stretch_upper and resize_shorter_side are"},
           {"img_rand_resize_lower: 30 img_rand_resize_upper: 40 random_resized_crop {}", "keep one way of resizing"},
           {"img_rand_resize_lower: 30 img_rand_resize_upper: 40 crop_size: 0", "add crop_size"}}) {
    EXPECT_NE(error(more).find(expected), std::string::npos) << more << ": " << error(more);
  }
}

}  // namespace
}  // namespace crema
