#include "data/transforms/transform.h"

#include <gtest/gtest.h>

#include <set>

#include "crema/blob.pb.h"
#include "data/data_testing.h"

namespace crema {
namespace {

constexpr ImageSize kSize{3, 7, 9};

std::vector<uint8_t> Planes() {
  const std::string data = testing::ImageDatum(kSize.channels, kSize.height, kSize.width, 11).data();
  return {data.begin(), data.end()};
}

std::vector<float> Apply(const Transform& transform, const std::vector<uint8_t>& image, uint64_t seed) {
  std::vector<float> out(transform.OutputSize(kSize).count());
  TransformScratch scratch;
  transform.Apply(image.data(), kSize, RandomStream(seed, 5), &scratch, out.data());
  return out;
}

// One pixel at a time, as the documentation states it.
std::vector<float> Expected(const std::vector<uint8_t>& image, int crop, int top, int left, bool mirror, float scale,
                            const std::vector<float>& mean_values, const std::vector<float>& mean_image) {
  const int height = crop ? crop : kSize.height, width = crop ? crop : kSize.width;
  std::vector<float> out;
  for (int c = 0; c < kSize.channels; ++c) {
    for (int h = 0; h < height; ++h) {
      for (int w = 0; w < width; ++w) {
        const int column = left + (mirror ? width - 1 - w : w);
        const int at = (c * kSize.height + top + h) * kSize.width + column;
        float mean = 0;
        if (!mean_values.empty()) mean = mean_values.size() > 1 ? mean_values[c] : mean_values[0];
        if (!mean_image.empty()) mean = mean_image[at];
        out.push_back((image[at] - mean) * scale);
      }
    }
  }
  return out;
}

std::vector<float> WriteMean(const std::string& path, bool old_shape) {
  BlobProto mean;
  std::vector<float> values;
  for (int i = 0; i < kSize.count(); ++i) mean.add_data(values.emplace_back(0.25f * static_cast<float>(i)));
  if (old_shape) {
    mean.set_num(1);
    mean.set_channels(kSize.channels);
    mean.set_height(kSize.height);
    mean.set_width(kSize.width);
  } else {
    for (const int extent : {kSize.channels, kSize.height, kSize.width}) mean.mutable_shape()->add_dim(extent);
  }
  testing::WriteFile(path, mean.SerializeAsString());
  return values;
}

TEST(Transform, WithoutFieldsCopies) {
  const std::vector<uint8_t> image = Planes();
  const Transform transform({}, TRAIN, "");
  EXPECT_EQ(Apply(transform, image, 1), Expected(image, 0, 0, 0, false, 1, {}, {}));
}

TEST(Transform, SubtractsTheMeanThenScales) {
  const std::vector<uint8_t> image = Planes();
  TransformationParameter param;
  param.set_scale(0.00390625f);
  param.add_mean_value(104);
  EXPECT_EQ(Apply(Transform(param, TRAIN, ""), image, 1), Expected(image, 0, 0, 0, false, 0.00390625f, {104}, {}));
  param.add_mean_value(117.5f);
  param.add_mean_value(123);
  EXPECT_EQ(Apply(Transform(param, TEST, ""), image, 1),
            Expected(image, 0, 0, 0, false, 0.00390625f, {104, 117.5f, 123}, {}));
}

TEST(Transform, TestCropsTheCentre) {
  const std::vector<uint8_t> image = Planes();
  TransformationParameter param;
  param.set_crop_size(4);
  const Transform transform(param, TEST, "");
  EXPECT_EQ(transform.OutputSize(kSize), (ImageSize{3, 4, 4}));
  for (uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(Apply(transform, image, seed), Expected(image, 4, 1, 2, false, 1, {}, {}));
  }
}

TEST(Transform, TrainCropsEverywhereAndMirrorsHalf) {
  TemporaryFolder folder;
  const std::vector<uint8_t> image = Planes();
  for (const bool with_mean : {false, true}) {
    TransformationParameter param;
    param.set_crop_size(4);
    param.set_mirror(true);
    param.set_scale(2);
    std::vector<float> mean_image;
    if (with_mean) {
      mean_image = WriteMean(folder / "mean", false);
      param.set_mean_file("mean");
    }
    const Transform transform(param, TRAIN, folder / "mean");
    std::set<std::tuple<int, int, bool>> seen;
    int mirrored = 0;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      const std::vector<float> out = Apply(transform, image, seed);
      int matches = 0;
      for (int top = 0; top <= 3; ++top) {
        for (int left = 0; left <= 5; ++left) {
          for (const bool mirror : {false, true}) {
            if (out != Expected(image, 4, top, left, mirror, 2, {}, mean_image)) continue;
            ++matches;
            mirrored += mirror;
            seen.insert({top, left, mirror});
          }
        }
      }
      ASSERT_EQ(matches, 1) << "seed " << seed;
    }
    EXPECT_EQ(seen.size(), 4u * 6 * 2);
    EXPECT_NEAR(mirrored, 500, 80);
  }
}

TEST(Transform, MirrorsInTestToo) {
  const std::vector<uint8_t> image = Planes();
  TransformationParameter param;
  param.set_mirror(true);
  const Transform transform(param, TEST, "");
  int mirrored = 0;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    const std::vector<float> out = Apply(transform, image, seed);
    const bool is_mirrored = out != Expected(image, 0, 0, 0, false, 1, {}, {});
    EXPECT_EQ(out, Expected(image, 0, 0, 0, is_mirrored, 1, {}, {}));
    mirrored += is_mirrored;
  }
  EXPECT_GT(mirrored, 16);
  EXPECT_LT(mirrored, 48);
}

TEST(Transform, MeanFileInBothShapesOfBlobProto) {
  TemporaryFolder folder;
  const std::vector<uint8_t> image = Planes();
  TransformationParameter param;
  param.set_mean_file("as written in the net");
  for (const bool old_shape : {false, true}) {
    const std::vector<float> mean = WriteMean(folder / "mean", old_shape);
    const Transform transform(param, TEST, folder / "mean");
    EXPECT_EQ(transform.Check(kSize), "");
    EXPECT_EQ(Apply(transform, image, 0), Expected(image, 0, 0, 0, false, 1, {}, mean));
    EXPECT_NE(transform.Check({3, 7, 8}).find("3x7x9"), std::string::npos);
  }
}

TEST(Transform, FloatImagesGiveTheSame) {
  const std::vector<uint8_t> image = Planes();
  const std::vector<float> floats(image.begin(), image.end());
  TransformationParameter param;
  param.set_crop_size(5);
  param.set_mirror(true);
  param.add_mean_value(3);
  const Transform transform(param, TRAIN, "");
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<float> out(transform.OutputSize(kSize).count());
    transform.Apply(floats.data(), kSize, RandomStream(seed, 5), out.data());
    EXPECT_EQ(out, Apply(transform, image, seed));
  }
}

TEST(Transform, ContradictionsAreErrors) {
  TransformationParameter param;
  param.add_mean_value(1);
  param.add_mean_value(2);
  EXPECT_NE(Transform(param, TRAIN, "").Check(kSize).find("2 mean_value"), std::string::npos);
  param.set_mean_file("mean");
  testing::ExpectThrows<UserError>([&] { Transform(param, TRAIN, "mean"); }, {"mean_file", "mean_value"});
  TransformationParameter crop;
  crop.set_crop_size(8);
  EXPECT_NE(Transform(crop, TRAIN, "").Check(kSize).find("crop_size 8 exceeds"), std::string::npos);
}

TEST(MeanFile, UnusableFilesAreUserErrors) {
  TemporaryFolder folder;
  testing::ExpectThrows<UserError>([&] { ReadMean(folder / "absent"); }, {"does not exist", "compute_image_mean"});
  testing::WriteFile(folder / "text", "name: \"LeNet\"\n");
  testing::ExpectThrows<UserError>([&] { ReadMean(folder / "text"); }, {"text"});
  WriteMean(folder / "mean", true);
  const std::string whole = testing::ReadFile(folder / "mean");
  for (size_t bytes = 0; bytes < whole.size(); bytes += 5) {
    testing::WriteFile(folder / "cut", whole.substr(0, bytes));
    EXPECT_THROW(ReadMean(folder / "cut"), UserError) << bytes;
  }
  BlobProto lies;
  for (const int64_t extent : {1ll, 1ll << 40, 1ll << 40}) lies.mutable_shape()->add_dim(extent);
  testing::WriteFile(folder / "lies", lies.SerializeAsString());
  testing::ExpectThrows<UserError>([&] { ReadMean(folder / "lies"); }, {"is damaged"});
}

}  // namespace
}  // namespace crema
