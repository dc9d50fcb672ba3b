// Crops at fixed places and of several sizes.
#include "data/transforms/crop_choice.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "data/augmentation_testing.h"
#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Photograph;

TransformationParameter Param(const std::string& fields) {
  TransformationParameter param;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(fields, &param)) << fields;
  return param;
}

using Areas = std::set<std::tuple<int, int, int, int>>;

Areas AreasOf(const std::string& fields, int height, int width) {
  const auto choice = CropChoice::Of(Param(fields));
  Areas seen;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const ImageArea area = choice->Draw(height, width, testing::StreamOf(seed), 0);
    seen.emplace(area.top, area.left, area.height, area.width);
  }
  return seen;
}

TEST(CropChoice, IsThereWhereAFieldAsksForIt) {
  EXPECT_FALSE(CropChoice::Of(Param("crop_size: 4 more_fix_crop: true scale_ratios: 0.5 max_distort: 2")));
  EXPECT_FALSE(CropChoice::Of(Param("crop_size: 4 fix_crop: true"))->resizes());
  EXPECT_TRUE(CropChoice::Of(Param("crop_size: 4 multi_scale: true"))->resizes());
}

TEST(CropChoice, TakesCornersAndCentre) {
  // Quarters of the way are whole pixels: (22 - 10) / 4 and (31 - 10) / 4.
  EXPECT_EQ(AreasOf("crop_size: 10 fix_crop: true", 22, 31),
            (Areas{{0, 0, 10, 10}, {0, 20, 10, 10}, {12, 0, 10, 10}, {12, 20, 10, 10}, {6, 10, 10, 10}}));
  const Areas more = AreasOf("crop_size: 10 fix_crop: true more_fix_crop: true", 22, 31);
  EXPECT_EQ(more.size(), 13u);
  for (const auto& [top, left] : {std::pair(0, 10), {12, 10}, {6, 0}, {6, 20}, {3, 5}, {3, 15}, {9, 5}, {9, 15}}) {
    EXPECT_TRUE(more.contains({top, left, 10, 10})) << top << " " << left;
  }
}

TEST(CropChoice, TakesSizesWhoseRatiosStandNearEachOther) {
  std::set<std::pair<int, int>> sizes;
  for (const auto& [top, left, height, width] : AreasOf("crop_size: 224 multi_scale: true", 256, 340)) {
    EXPECT_GE(top, 0);
    EXPECT_GE(left, 0);
    EXPECT_LE(top + height, 256);
    EXPECT_LE(left + width, 340);
    sizes.emplace(height, width);
  }
  EXPECT_EQ(sizes, (std::set<std::pair<int, int>>{{256, 256},
                                                  {256, 224},
                                                  {224, 256},
                                                  {224, 224},
                                                  {224, 192},
                                                  {192, 224},
                                                  {192, 192},
                                                  {192, 168},
                                                  {168, 192},
                                                  {168, 168}}));
  sizes.clear();
  const std::string squares = "crop_size: 50 multi_scale: true scale_ratios: [1, 0.5, 0.26] max_distort: 0";
  for (const auto& [top, left, height, width] : AreasOf(squares, 103, 200)) sizes.emplace(height, width);
  // 51 is nearly crop_size.
  EXPECT_EQ(sizes, (std::set<std::pair<int, int>>{{103, 103}, {50, 50}, {26, 26}}));
  sizes.clear();
  const std::string all = "crop_size: 50 multi_scale: true scale_ratios: [1, 0.5, 0.26] max_distort: 2147483647";
  for (const auto& [top, left, height, width] : AreasOf(all, 103, 200)) sizes.emplace(height, width);
  EXPECT_EQ(sizes.size(), 9u);
}

TEST(CropChoice, TransformsCutAtThePlacesInTraining) {
  Image image;
  image.Resize(22, 31, 1);
  for (int y = 0; y < 22; ++y) {
    for (int x = 0; x < 31; ++x) image.row(y)[x] = static_cast<uint8_t>(10 * y + x / 5 * 5 % 10 + x % 5);
  }
  const Transform train(Param("crop_size: 10 fix_crop: true"), TRAIN, "");
  std::set<float> corners;
  for (uint64_t seed = 0; seed < 60; ++seed) corners.insert(testing::Apply(train, image, seed)[0]);
  const auto at = [&](int y, int x) { return static_cast<float>(image.row(y)[x]); };
  EXPECT_EQ(corners, (std::set<float>{at(0, 0), at(0, 20), at(12, 0), at(12, 20), at(6, 10)}));
  const Transform test(Param("crop_size: 10 fix_crop: true multi_scale: true"), TEST, "");
  EXPECT_EQ(testing::Apply(test, image, 3)[0], at(6, 10));
}

TEST(CropChoice, TransformsResizeWhatTheyCutOut) {
  const Image image = Photograph(40, 60);
  const TransformationParameter param =
      Param("crop_size: 20 multi_scale: true mirror: true mean_value: [10, 20, 30] scale: 0.5");
  const Transform transform(param, TRAIN, "");
  const Transform whole(Param("crop_size: 20 mirror: true mean_value: [10, 20, 30] scale: 0.5"), TEST, "");
  Image cut;
  ResizeBuffers buffers;
  std::set<bool> resized;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const ImageArea area = CropChoice::Of(param)->Draw(40, 60, testing::StreamOf(seed), 128);
    ResizeBilinear(image, area, 20, 20, &buffers, &cut);
    EXPECT_EQ(testing::Apply(transform, image, seed), testing::Apply(whole, cut, seed)) << seed;
    resized.insert(area.height != 20);
  }
  EXPECT_TRUE(resized.contains(true));
}

// Resizing and cutting out interpolate once, so that both lie at the same place.
TEST(CropChoice, TransformsResizeOnceWhereImagesAreResized) {
  Image slope;
  slope.Resize(64, 96, 1);
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 96; ++x) slope.row(y)[x] = static_cast<uint8_t>(2 * x + y);
  }
  const TransformationParameter param = Param("resize_height: 32 resize_width: 48 crop_size: 16 multi_scale: true");
  const Transform transform(param, TRAIN, "");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ImageArea area = CropChoice::Of(param)->Draw(32, 48, testing::StreamOf(seed), 128);
    const std::vector<float> out = testing::Apply(transform, slope, seed);
    const auto place = [](int first, int extent, int i) { return 2 * (first + (i + 0.5) * extent / 16) - 0.5; };
    for (const auto& [y, x] : {std::pair(1, 1), {7, 9}, {14, 14}}) {
      const double wanted = 2 * place(area.left, area.width, x) + place(area.top, area.height, y);
      EXPECT_NEAR(out[static_cast<size_t>(16 * y + x)], wanted, 1.01) << seed << " " << y << " " << x;
    }
  }
}

TEST(CropChoice, FieldsThatContradictAreRefused) {
  for (const auto& [fields, part] :
       {std::pair<std::string, std::string>("fix_crop: true", "fix_crop is set without crop_size"),
        {"multi_scale: true", "multi_scale is set without crop_size"},
        {"multi_scale: true crop_size: 4 scale_ratios: 1.5", "scale_ratios is 1.5"},
        {"multi_scale: true crop_size: 4 scale_ratios: 0", "scale_ratios is 0"},
        {"multi_scale: true crop_size: 4 max_distort: -1", "max_distort is -1"},
        {"multi_scale: true crop_size: 4 pad: 1", "multi_scale and pad are both set"},
        {"multi_scale: true crop_size: 4 mean_file: \"m\"", "multi_scale and mean_file"},
        {"multi_scale: true crop_size: 4 max_rotation_angle: 9", "max_rotation_angle"},
        {"multi_scale: true crop_size: 4 horizontal_stretch_upper: 2", "horizontal_stretch"},
        {"fix_crop: true crop_size: 4 random_resized_crop {}", "fix_crop and random_resized_crop"}}) {
    SCOPED_TRACE(fields);
    ExpectThrows<UserError>([&, text = fields] { Transform(Param(text), TRAIN, ""); }, {part});
  }
  ExpectThrows<UserError>(
      [] { Transform(Param("multi_scale: true crop_size: 4"), TRAIN, "", Transform::SmallImages::kPadded); },
      {"multi_scale is not done to images that get a border"});
  const auto layer = [](const std::string& type, const std::string& text) {
    testing::SourceDriver(type, "top: \"d\" " + text);
  };
  const std::string crop = " transform_param { crop_size: 4 ";
  ExpectThrows<UserError>(
      [&] { layer("DenseImageData", "dense_image_data_param { source: \"absent\" }" + crop + "multi_scale: true }"); },
      {"multi_scale is not done to label images"});
  ExpectThrows<UserError>(
      [&] {
        layer("WindowData", "window_data_param { source: \"absent\" batch_size: 1 }" + crop + "fix_crop: true }");
      },
      {"fix_crop is not done to windows"});
}

}  // namespace
}  // namespace crema
