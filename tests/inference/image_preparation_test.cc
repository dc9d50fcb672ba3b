// How images become a net's input.
#include "inference/image_preparation.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "crema/error.h"
#include "data/data_testing.h"
#include "data/databases/mean_file.h"
#include "image/codec.h"
#include "inference/image_batcher.h"
#include "inference/image_runner.h"
#include "inference/small_images.h"
#include "temporary_folder.h"

namespace crema {
namespace {

// What the net sees of the image, or what is wrong with it.
struct Prepared {
  std::vector<float> values;
  std::string problem;
};

Prepared FromFile(const std::string& param, const Image& image, const ImageSize& input) {
  const ImagePreparation preparation(Param(param), "", input);
  PreparationBuffers buffers;
  Prepared prepared{std::vector<float>(input.count()), ""};
  prepared.problem = preparation.FromFile(EncodePng(image), false, &buffers, prepared.values.data());
  return prepared;
}

Prepared FromRecord(const std::string& param, const Image& image, const ImageSize& input) {
  const ImagePreparation preparation(Param(param), "", input);
  PreparationBuffers buffers;
  DatumView record;
  record.size = {image.channels, image.height, image.width};
  record.data = {image.pixels.data(), image.size()};
  Prepared prepared{std::vector<float>(input.count()), ""};
  prepared.problem = preparation.FromRecord(record, &buffers, prepared.values.data());
  return prepared;
}

TEST(ImagePreparation, StretchesToTheInputWhereNothingIsSaid) {
  // Halves are means of four pixels.
  EXPECT_EQ(FromFile("", Ramp(4, 4), {1, 2, 2}).values, (std::vector<float>{6, 8, 26, 28}));
  EXPECT_EQ(FromRecord("scale: 2", Ramp(4, 4), {1, 2, 2}).values, (std::vector<float>{12, 16, 52, 56}));
}

TEST(ImagePreparation, CropsFilesAfterTheShorterSideAndRecordsAsTheyAre) {
  // 4x8: the shorter side becomes 2, so 2x4, of which the middle is kept.
  EXPECT_EQ(FromFile("crop_size: 2", Ramp(4, 8), {1, 2, 2}).values, (std::vector<float>{8, 10, 28, 30}));
  EXPECT_EQ(FromRecord("crop_size: 2", Ramp(4, 8), {1, 2, 2}).values, (std::vector<float>{13, 14, 23, 24}));
  EXPECT_EQ(FromFile("crop_size: 2 resize_shorter_side: 4", Ramp(4, 8), {1, 2, 2}).values,
            (std::vector<float>{13, 14, 23, 24}));
  EXPECT_EQ(FromRecord("crop_size: 2 resize_height: 2 resize_width: 4", Ramp(4, 8), {1, 2, 2}).values,
            (std::vector<float>{8, 10, 28, 30}));
}

TEST(ImagePreparation, TakesTheMiddleOfALargerMeanImage) {
  const TemporaryFolder folder;
  MeanImage mean;
  mean.shape = Shape{1, 4, 4};
  for (int i = 0; i < 16; ++i) mean.values.push_back(static_cast<float>(i));
  WriteMean(mean, folder / "mean");
  const auto prepared = [&](const ImageSize& input) {
    const ImagePreparation preparation(Param("mean_file: \"mean\""), folder / "mean", input);
    PreparationBuffers buffers;
    Prepared result{std::vector<float>(input.count()), ""};
    result.problem = preparation.FromFile(EncodePng(Ramp(4, 4)), false, &buffers, result.values.data());
    return result;
  };
  // Rows of the image differ by 10, of the mean by 4.
  EXPECT_EQ(prepared({1, 2, 2}).values, (std::vector<float>{6, 6, 12, 12}));
  EXPECT_EQ(prepared({1, 4, 4}).values, (std::vector<float>{0, 0, 0, 0, 6, 6, 6, 6, 12, 12, 12, 12, 18, 18, 18, 18}));
  EXPECT_NE(prepared({1, 2, 3}).problem.find("comes out as 1x4x4"), std::string::npos);
}

TEST(ImagePreparation, NothingIsRandomAndPaddingCounts) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(FromRecord("mirror: true mirror_vertical: true max_rotation_angle: 180 random_erasing { probability: 1 }",
                         Ramp(2, 2), {1, 2, 2})
                  .values,
              (std::vector<float>{0, 1, 10, 11}));
  }
  EXPECT_EQ(FromRecord("pad: 1 crop_size: 4", Ramp(2, 2), {1, 4, 4}).values,
            (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0, 0, 10, 11, 0, 0, 0, 0, 0}));
}

TEST(ImagePreparation, SaysWhatDoesNotFit) {
  EXPECT_THROW(FromFile("crop_size: 3", Ramp(4, 4), {1, 2, 2}), UserError);
  EXPECT_THROW(FromFile("resize_height: 3", Ramp(4, 4), {1, 2, 2}), UserError);
  EXPECT_THROW(FromFile("resize_height: 3 resize_width: 3 resize_shorter_side: 3", Ramp(4, 4), {1, 2, 2}), UserError);
  EXPECT_NE(FromFile("resize_height: 3 resize_width: 3", Ramp(4, 4), {1, 2, 2}).problem.find("comes out as 1x3x3"),
            std::string::npos);
  EXPECT_NE(FromRecord("", Ramp(2, 2), {3, 2, 2}).problem.find("has 1 channels, but the net's input has 3"),
            std::string::npos);
  EXPECT_EQ(FromFile("mean_value: 3", Ramp(2, 2), {1, 2, 2}).problem, "");
  for (const std::string field : {"mean_value", "std_value"}) {
    testing::ExpectThrows<UserError>(
        [&] {
          FromFile(field + ": 1 " + field + ": 2 " + field + ": 3", Ramp(2, 2), {1, 2, 2});
        },
        {"3 " + field + " fields", "1x2x2", "one per channel"});
  }
  PreparationBuffers buffers;
  float out[4];
  EXPECT_FALSE(
      ImagePreparation({}, "", {1, 2, 2}).FromFile(std::vector<uint8_t>{1, 2, 3}, false, &buffers, out).empty());
}

TEST(ImagePreparation, ChangedFieldsReplaceWaysOfResizingAndMeansAsAWhole) {
  const TransformationParameter changed =
      Changed(Param("mean_value: 1 mean_value: 2 resize_height: 5 resize_width: 6 scale: 3 crop_size: 4"),
              Param("mean_value: 7 resize_shorter_side: 8"));
  EXPECT_EQ(changed.SerializeAsString(),
            Param("mean_value: 7 resize_shorter_side: 8 scale: 3 crop_size: 4").SerializeAsString());
}

TEST(ImagePreparation, KeepsProportionsWhereResizeParamDoes) {
  const std::string fit = "resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 4 width: 2 pad_value: 9 }";
  const std::vector<float> expected = {9, 9, 6, 8, 26, 28, 9, 9};
  EXPECT_EQ(FromFile(fit, Ramp(4, 4), {1, 4, 2}).values, expected);
  EXPECT_EQ(FromRecord(fit, Ramp(4, 4), {1, 4, 2}).values, expected);
  EXPECT_EQ(ImagePreparation(Param(fit), "", {1, 4, 2}).PlaceInInput({4, 4}), (ImageArea{1, 0, 2, 2}));
  EXPECT_EQ(ImagePreparation({}, "", {1, 4, 2}).PlaceInInput({4, 4}), (ImageArea{0, 0, 4, 2}));
  testing::ExpectThrows<UserError>(
      [&] {
        FromFile("resize_param { height: 4 width: 2 pad_value: 1 pad_value: 2 }", Ramp(4, 4), {1, 4, 2});
      },
      {"2 resize_param.pad_value fields", "1x4x2"});
  // Another size is a size of the same kind.
  const TransformationParameter larger = Changed(Param(fit), Param("resize_height: 8 resize_width: 6"));
  EXPECT_EQ(larger.SerializeAsString(),
            Param("resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 8 width: 6 pad_value: 9 }")
                .SerializeAsString());
  EXPECT_EQ(Changed(Param(fit), Param("resize_shorter_side: 8")).SerializeAsString(),
            Param("resize_shorter_side: 8").SerializeAsString());
}

TEST(ImageBatcher, DeliversAllImagesOnceAndZerosForBrokenOnes) {
  const auto preparation = std::make_shared<const ImagePreparation>(TransformationParameter(), "", ImageSize{1, 1, 2});
  for (const int threads : {1, 4}) {
    ImageBatcher batcher(std::make_shared<Numbers>(), preparation, 4, threads);
    ImageBatch batch;
    uint64_t seen = 0;
    while (batcher.Next(&batch)) {
      EXPECT_EQ(batch.first, seen);
      EXPECT_EQ(batch.count, seen == 8 ? 2 : 4);
      for (int64_t row = 0; row < 4; ++row, ++seen) {
        const bool there = row < batch.count, broken = there && seen % 3 == 2;
        EXPECT_EQ(batch.data[row * 2 + 1], there && !broken ? static_cast<float>(seen + 1) : 0) << seen;
        if (!there) continue;
        EXPECT_EQ(batch.labels[row].number, static_cast<int64_t>(seen));
        EXPECT_EQ(batch.problems[row], broken ? "broken" : "");
      }
    }
    EXPECT_EQ(seen, 12u);
    EXPECT_FALSE(batcher.Next(&batch));
  }
}

}  // namespace
}  // namespace crema
