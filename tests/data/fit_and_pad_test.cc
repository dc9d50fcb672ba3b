// resize_mode: FIT_LARGE_SIZE_AND_PAD, of pixels, labels and boxes.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/augmentation_testing.h"
#include "data/image_testing.h"
#include "data/transforms/annotated_transform.h"
#include "data/transforms/transform.h"
#include "data/transforms/transform_check.h"

namespace crema {
namespace {

using google::protobuf::TextFormat;

TransformationParameter Fitting(int height, int width, const std::string& fields, const std::string& others = "") {
  TransformationParameter param;
  EXPECT_TRUE(TextFormat::ParseFromString(
      "resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: " + std::to_string(height) +
          " width: " + std::to_string(width) + " " + fields + " } " + others,
      &param));
  return param;
}

// 10 x 20 pixels of 0 to 199, from left to right.
Image Slope() {
  Image image;
  image.Resize(10, 20, 1);
  for (int y = 0; y < 10; ++y) {
    for (int x = 0; x < 20; ++x) image.row(y)[x] = static_cast<uint8_t>(10 * x + y);
  }
  return image;
}

TEST(FitAndPad, PutsAnImageIntoTheMiddle) {
  const Transform transform(Fitting(12, 10, "pad_value: 50.6", "mean_value: 1 scale: 2"), TEST, "");
  ASSERT_TRUE(transform.fixed_extent());
  EXPECT_EQ(transform.fixed_extent()->height, 12);
  EXPECT_EQ(transform.fixed_extent()->width, 10);
  const std::vector<float> out = testing::Apply(transform, Slope(), 0);
  ASSERT_EQ(out.size(), 120u);
  for (int y = 0; y < 12; ++y) {
    for (int x = 0; x < 10; ++x) {
      // Halved: means of four, of which the lower row is 1 more, and the right column 10.
      const int row = 2 * (y - 3);
      const float pixel = y < 3 || y >= 8 ? 51 : static_cast<float>((4 * (20 * x + row) + 2 * 10 + 2 * 1 + 2) / 4);
      EXPECT_EQ(out[static_cast<size_t>(10 * y + x)], 2 * (pixel - 1)) << y << "," << x;
    }
  }
}

TEST(FitAndPad, ColoursHaveAPadValueEach) {
  const Transform transform(Fitting(8, 30, "pad_value: 1 pad_value: 2 pad_value: 3"), TEST, "");
  EXPECT_EQ(transform.Check({3, 10, 20}), "");
  EXPECT_NE(transform.Check({1, 10, 20}).find("there are 3 resize_param.pad_value fields"), std::string::npos);
  const std::vector<float> out = testing::Apply(transform, testing::Photograph(10, 20), 0);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(out[240 * c], static_cast<float>(c + 1));
    EXPECT_EQ(out[240 * c + 239], static_cast<float>(c + 1));
  }
}

// The image is its own label image; of the pixels beside it all are 0.
TEST(FitAndPad, LabelsLieWhereTheirPixelsDo) {
  Image image = Slope();
  for (uint8_t& pixel : image.pixels) pixel = 200;
  for (const char* others : {"", "crop_size: 7 mirror: true", "pad: 3 mirror: true mirror_vertical: true",
                             "pad: 5 crop_size: 4 mirror: true mirror_vertical: true"}) {
    for (const auto& [height, width] : {std::pair{17, 10}, {10, 37}, {9, 18}, {10, 20}}) {
      const Transform transform(Fitting(height, width, "", others), TRAIN, "");
      for (uint64_t seed = 0; seed < 40; ++seed) {
        const std::vector<float> pixels = testing::Apply(transform, image, seed);
        const std::vector<float> labels = testing::ApplyToLabels(transform, image, seed);
        ASSERT_EQ(labels.size(), pixels.size());
        for (size_t i = 0; i < pixels.size(); ++i) {
          ASSERT_EQ(labels[i], pixels[i] == 0 ? 255 : 200) << others << " " << height << "x" << width << " " << i;
        }
      }
    }
  }
}

TEST(FitAndPad, BoxesLieWhereTheirPixelsDo) {
  const TransformationParameter param = Fitting(32, 24, "pad_value: 20",
                                                "mirror: true expand_param { prob: 0.5 "
                                                "max_expand_ratio: 2 }");
  AnnotatedDataParameter boxes;
  ASSERT_TRUE(
      TextFormat::ParseFromString("batch_sampler { sampler { min_scale: 0.7 min_aspect_ratio: 0.5 "
                                  "max_aspect_ratio: 2 } max_sample: 1 }",
                                  &boxes));
  const AnnotatedTransform transform(Transform(param, TRAIN, ""), param, boxes, TRAIN);
  int seen = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    Image image;
    image.Resize(60, 100, 1);
    std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{40});
    for (int y = 10; y < 40; ++y) std::fill_n(image.row(y) + 30, 50, uint8_t{250});
    std::vector<BoxedObject> objects = {{1, 0, {0.3F, 10 / 60.0F, 0.8F, 40 / 60.0F}, false}};
    AnnotatedScratch scratch;
    std::vector<float> out(32 * 24);
    transform.Apply(&image, RandomStream(3, i), &scratch, &objects, out.data());
    if (objects.empty()) continue;
    ++seen;
    // What is bright.
    int top = 32, bottom = 0, left = 24, right = 0;
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 24; ++x) {
        if (out[static_cast<size_t>(24 * y + x)] < 145) continue;
        top = std::min(top, y);
        bottom = std::max(bottom, y + 1);
        left = std::min(left, x);
        right = std::max(right, x + 1);
      }
    }
    const ObjectBox& box = objects[0].box;
    EXPECT_NEAR(box.xmin * 24, left, 1) << i;
    EXPECT_NEAR(box.xmax * 24, right, 1) << i;
    EXPECT_NEAR(box.ymin * 32, top, 1) << i;
    EXPECT_NEAR(box.ymax * 32, bottom, 1) << i;
  }
  EXPECT_GT(seen, 50);
}

TEST(FitAndPad, MistakesAreNamed) {
  const auto mistake = [](const std::string& fields, const std::string& others) {
    const auto found = FindMistake(Fitting(8, 8, fields, others));
    return found ? found->field + ": " + found->message : "";
  };
  EXPECT_EQ(mistake("", ""), "");
  EXPECT_EQ(mistake("pad_value: 255 pad_mode: MIRRORED", "crop_size: 5"), "");
  EXPECT_NE(mistake("pad_value: 3 pad_value: 256", "").find("resize_param.pad_value: pad_value is 256"),
            std::string::npos);
  EXPECT_NE(mistake("pad_value: nan", "").find("in [0, 255]"), std::string::npos);
  EXPECT_NE(mistake("", "max_rotation_angle: 5").find("max_rotation_angle is not done to images with the border"),
            std::string::npos);
  EXPECT_NE(mistake("", "crop_size: 5 multi_scale: true").find("multi_scale"), std::string::npos);
}

}  // namespace
}  // namespace crema
