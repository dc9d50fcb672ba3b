// Image files with label images: DenseImageLoader and the layer DenseImageData.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Photograph;

class DenseImageDataTest : public ::testing::Test {
 protected:
  static constexpr int kHeight = 24, kWidth = 30;

  // Six grey images, each of which is its own label image, and their list.
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "seg/the images");
    std::filesystem::create_directories(folder_ / "seg/labels");
    std::string list;
    for (int i = 0; i < 6; ++i) {
      const std::string name = std::to_string(i) + ".png";
      const std::string image = testing::Png(Smooth(kHeight, kWidth, i));
      testing::WriteFile(folder_ / ("seg/the images/" + name), image);
      testing::WriteFile(folder_ / ("seg/labels/" + name), image);
      list += "the images/" + name + " labels/" + name + "\n";
    }
    testing::WriteFile(folder_ / "list.txt", list);
  }

  // So that a pixel that was moved by one shows, but its place between two pixels hardly.
  static Image Smooth(int height, int width, int seed) {
    Image image;
    image.Resize(height, width, 1);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) image.row(y)[x] = static_cast<uint8_t>(10 + seed + 4 * y + 4 * x);
    }
    return image;
  }

  testing::SourceDriver Driver(const std::string& transform = "", const std::string& fields = "",
                               Phase phase = TRAIN) const {
    return testing::SourceDriver("DenseImageData",
                                 "top: \"data\" top: \"label\" dense_image_data_param { source: \"" +
                                     folder_ / "list.txt" + "\" root_folder: \"" + folder_ / "seg" +
                                     "\" batch_size: 4 is_color: false " + fields + " } transform_param { " +
                                     transform + " }",
                                 phase);
  }

  // Labels went the way of the pixels: they equal them up to `allowed`.
  void ExpectTogether(const std::string& transform, float allowed, const std::string& fields = "") {
    SCOPED_TRACE(transform + " " + fields);
    testing::SourceDriver driver = Driver(transform, fields);
    bool differs = false;  // from one image to the next, as what is drawn does
    for (int k = 0; k < 6; ++k) {
      driver.Forward();
      ASSERT_EQ(driver.value(0).size(), driver.value(1).size());
      for (size_t i = 0; i < driver.value(0).size(); ++i) {
        ASSERT_NEAR(driver.value(0)[i], driver.value(1)[i], allowed) << "batch " << k << ", value " << i;
      }
      const auto first = driver.value(1).begin();
      const auto values = static_cast<int64_t>(driver.value(1).size() / 4);
      differs |= !std::equal(first, first + values, first + values);
    }
    EXPECT_TRUE(differs);
  }

  TemporaryFolder folder_;
};

TEST_F(DenseImageDataTest, DeliversPixelsAndTheirLabels) {
  testing::SourceDriver driver = Driver();
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 1, kHeight, kWidth}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{4, 1, kHeight, kWidth}));
  driver.Forward();
  driver.Forward();  // images 4, 5, 0, 1
  for (int i = 0; i < 4; ++i) {
    const Image image = Smooth(kHeight, kWidth, (4 + i) % 6);
    const auto begin = driver.value(1).begin() + i * kHeight * kWidth;
    EXPECT_EQ(std::vector<float>(begin, begin + kHeight * kWidth),
              std::vector<float>(image.pixels.begin(), image.pixels.end()));
  }
  EXPECT_NE(driver.layer().DescribeItem(0).find("the images/4.png"), std::string::npos);
}

TEST_F(DenseImageDataTest, LabelsGoWithTheirPixels) {
  ExpectTogether("crop_size: 9 mirror: true", 0);
  ExpectTogether("crop_size: 9 mirror: true", 0, "shuffle: true threads: 2");
  // Interpolated in the one, nearest in the other: half of the step between two pixels, in both directions.
  ExpectTogether("mirror: true", 4.5, "new_height: 17 new_width: 41");
  ExpectTogether("mirror: true random_resized_crop { min_area: 0.3 } crop_size: 16", 4.5);
  ExpectTogether("resize_shorter_side: 40 crop_size: 31", 4.5);
  ExpectTogether("mirror_vertical: true crop_size: 9 mirror: true pad: 3", 0, "ignore_label: 0");
  // Outside of the image both are 0.
  for (const std::string way :
       {"", "crop_size: 16 mirror: true", "crop_size: 28 pad: 9 mirror_vertical: true",
        "crop_size: 16 mirror_vertical: true random_resized_crop { min_area: 0.4 }", "resize_shorter_side: 40"}) {
    ExpectTogether("max_rotation_angle: 60 " + way, 4.5, "ignore_label: 0");
  }
  ExpectTogether("max_rotation_angle: 60", 4.5,
                 "ignore_label: 0 new_height: 17 new_width: 41 shuffle: true threads: 2");
}

// JPEGs are decoded at an eighth of their size where that is enough for what is cut out.
TEST_F(DenseImageDataTest, LabelsGoWithPixelsOfSmallerDecodedImages) {
  constexpr int kLarge = 512;
  Image image;
  image.Resize(kLarge, kLarge, 1);
  for (int y = 0; y < kLarge; ++y) {
    for (int x = 0; x < kLarge; ++x) image.row(y)[x] = static_cast<uint8_t>((x + y) / 5);
  }
  const std::vector<uint8_t> jpeg = EncodeJpeg(image);
  testing::WriteFile(folder_ / "seg/large.jpg", std::string(jpeg.begin(), jpeg.end()));
  testing::WriteFile(folder_ / "seg/large.png", testing::Png(image));
  testing::WriteFile(folder_ / "list.txt", "large.jpg large.png\n");
  ExpectTogether("mirror: true random_resized_crop { min_area: 0.6 } crop_size: 24", 8);
  ExpectTogether("max_rotation_angle: 45 random_resized_crop { min_area: 0.6 } crop_size: 24", 8, "ignore_label: 0");
}

TEST_F(DenseImageDataTest, ImagesAloneNeedNoLabels) {
  std::filesystem::remove_all(folder_ / "seg/labels");
  testing::SourceDriver driver("DenseImageData", "top: \"data\" dense_image_data_param { source: \"" +
                                                     folder_ / "list.txt" + "\" root_folder: \"" + folder_ / "seg" +
                                                     "\" batch_size: 4 }");
  driver.Forward();
  EXPECT_EQ(driver.value(0)[0], 10);
}

TEST_F(DenseImageDataTest, ValuesOfPixelsLeaveLabelsAlone) {
  testing::SourceDriver plain = Driver("crop_size: 9 mirror: true");
  testing::SourceDriver changed = Driver(
      "crop_size: 9 mirror: true mean_value: 100 scale: 0.5 color_jitter { brightness: 0.5 } "
      "random_erasing { probability: 1 }");
  plain.Forward();
  changed.Forward();
  EXPECT_NE(changed.value(0), plain.value(0));
  EXPECT_EQ(changed.value(1), plain.value(1));
}

TEST_F(DenseImageDataTest, BordersAreIgnored) {
  for (const int ignored : {255, 7}) {
    testing::SourceDriver driver = Driver("pad: 2", ignored == 255 ? "" : "ignore_label: 7");
    driver.Forward();
    const int width = kWidth + 4, plane = (kHeight + 4) * width;
    const std::vector<float>& label = driver.value(1);
    EXPECT_EQ(label[0], ignored);
    EXPECT_EQ(label[static_cast<size_t>(plane - 1)], ignored);
    EXPECT_EQ(label[static_cast<size_t>(2 * width + 1)], ignored);
    EXPECT_EQ(label[static_cast<size_t>(2 * width + 2)], 10);
    EXPECT_EQ(std::count(label.begin(), label.begin() + plane, static_cast<float>(ignored)), plane - kHeight * kWidth);
  }
}

TEST_F(DenseImageDataTest, MistakesAreNamed) {
  const auto expect = [&](const std::vector<std::string>& parts) {
    testing::SourceDriver driver = Driver();
    ExpectThrows<UserError>([&] { driver.Forward(); }, parts);
  };
  const std::string label = folder_ / "seg/labels/1.png";
  testing::WriteFile(label, testing::Png(Smooth(kWidth, kHeight, 0)));
  expect({"net.prototxt:dense_image_data_param.source", "label image \"" + label, "is 30x24, but image",
          "1.png\" (" + folder_ / "list.txt" + ":2) is 24x30", "has the size of its image"});
  testing::WriteFile(label, testing::Png(Photograph(kHeight, kWidth, 3)));
  expect({"label image \"" + label, "colours without a palette"});
  std::filesystem::remove(label);
  expect({label, "does not exist", "root_folder"});
  testing::WriteFile(folder_ / "list.txt", "alone.png\n");
  ExpectThrows<UserError>([&] { Driver(); },
                          {"list.txt:1", "expected \"image label_image\", got \"alone.png\"", "its label image"});
  testing::WriteFile(folder_ / "list.txt", "");
  ExpectThrows<UserError>([&] { Driver(); }, {"list.txt", "names no image"});
}

}  // namespace
}  // namespace crema
