// Image files with labels of pixels, of images or none, and with the border of small images: the layer ImageSegData.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema {
namespace {

using testing::ExpectThrows;

constexpr int kCrop = 16;
constexpr float kBorder = 255;

struct Extent {
  int height, width;
};
constexpr Extent kExtents[] = {{24, 30}, {8, 9}, {10, 40}, {40, 12}};

class ImageSegDataTest : public ::testing::Test {
 protected:
  // Grey images of several sizes, each of which is its own label image.
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "seg/the images");
    for (size_t i = 0; i < std::size(kExtents); ++i) {
      const std::string name = "/the images/" + std::to_string(i) + ".png";
      testing::WriteFile(folder_ / ("seg" + name), testing::Png(Numbered(static_cast<int>(i))));
      pairs_ += name + " " + "/labels/" + std::to_string(i) + ".png\n";
      classes_ += name + " " + std::to_string(i) + "\n";
      alone_ += name + "\n";
    }
    std::filesystem::create_directories(folder_ / "seg/labels");
    for (size_t i = 0; i < std::size(kExtents); ++i) {
      const std::string name = folder_ / ("seg/labels/" + std::to_string(i) + ".png");
      testing::WriteFile(name, testing::Png(Numbered(static_cast<int>(i))));
    }
  }

  static float PixelOf(int image, int y, int x) { return static_cast<float>(10 + 50 * image + 2 * (y % 10) + x % 20); }

  static Image Numbered(int i) {
    Image image;
    image.Resize(kExtents[i].height, kExtents[i].width, 1);
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) image.row(y)[x] = static_cast<uint8_t>(PixelOf(i, y, x));
    }
    return image;
  }

  testing::SourceDriver Driver(const std::string& list, const std::string& fields, const std::string& transform = "",
                               Phase phase = TEST, const std::string& tops = R"(top: "d" top: "l" top: "dim")") const {
    testing::WriteFile(folder_ / "list.txt", list);
    return testing::SourceDriver("ImageSegData",
                                 tops + " image_data_param { source: \"" + folder_ / "list.txt" + "\" root_folder: \"" +
                                     folder_ / "seg" + "\" batch_size: 4 is_color: false " + fields +
                                     " } transform_param { " + transform +
                                     (transform.find("crop_size") == std::string::npos ? " crop_size: 16" : "") + " }",
                                 phase);
  }

  // Where the middle of image i of a test begins.
  static int First(int extent) { return std::max(0, (extent - kCrop) / 2); }

  TemporaryFolder folder_;
  std::string pairs_, classes_, alone_;
};

TEST_F(ImageSegDataTest, SmallImagesGetABorderAtTheBottomAndAtTheRight) {
  for (const int ignored : {255, 3}) {
    testing::SourceDriver driver =
        Driver(pairs_, "label_type: PIXEL" + std::string(ignored == 255 ? "" : " ignore_label: 3"),
               "mean_value: 100 scale: 0.5");
    EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{4, 1, kCrop, kCrop}));
    EXPECT_EQ(driver.setup().top_specs()[2].shape, (Shape{4, 1, 1, 2}));
    driver.Forward();
    EXPECT_EQ(driver.value(2), (std::vector<float>{16, 16, 8, 9, 10, 16, 16, 12}));
    size_t at = 0;
    for (int i = 0; i < 4; ++i) {
      for (int y = 0; y < kCrop; ++y) {
        for (int x = 0; x < kCrop; ++x, ++at) {
          const bool inside = y < kExtents[i].height && x < kExtents[i].width;
          const float pixel = PixelOf(i, y + First(kExtents[i].height), x + First(kExtents[i].width));
          ASSERT_EQ(driver.value(0)[at], inside ? (pixel - 100) / 2 : 0) << i << " " << y << " " << x;
          ASSERT_EQ(driver.value(1)[at], inside ? pixel : static_cast<float>(ignored)) << i << " " << y << " " << x;
        }
      }
    }
  }
}

TEST_F(ImageSegDataTest, TrainingCutsAtRandomAndMirrorsWithTheBorder) {
  testing::SourceDriver driver =
      Driver(pairs_, "label_type: PIXEL shuffle: true rand_skip: 3 threads: 2", "mirror: true mean_value: 1", TRAIN);
  std::vector<float> corners;
  bool border_at_left = false, border_at_right = false;
  for (int k = 0; k < 12; ++k) {
    driver.Forward();
    for (int i = 0; i < 4; ++i) {
      const float* data = driver.value(0).data() + i * kCrop * kCrop;
      const float* label = driver.value(1).data() + i * kCrop * kCrop;
      const float height = driver.value(2)[static_cast<size_t>(2 * i)], width = driver.value(2)[2 * i + 1];
      for (int at = 0; at < kCrop * kCrop; ++at) {
        ASSERT_EQ(data[at], label[at] == kBorder ? 0 : label[at] - 1) << "pixels and labels went different ways";
      }
      EXPECT_EQ(std::count(label, label + kCrop * kCrop, kBorder), kCrop * kCrop - height * width);
      if (width < kCrop) {
        border_at_left |= label[0] == kBorder;
        border_at_right |= label[kCrop - 1] == kBorder;
        EXPECT_NE(label[0] == kBorder, label[kCrop - 1] == kBorder);
      }
      if (height == kCrop && width == kCrop) corners.push_back(label[0]);
    }
  }
  EXPECT_TRUE(border_at_left && border_at_right);
  std::sort(corners.begin(), corners.end());
  EXPECT_GT(std::unique(corners.begin(), corners.end()) - corners.begin(), 3);
}

TEST_F(ImageSegDataTest, ImagesHaveAClassOrNone) {
  for (const std::string resize : {"", "new_height: 13 new_width: 20"}) {
    testing::SourceDriver of_image = Driver(classes_, "label_type: IMAGE " + resize);
    testing::SourceDriver none = Driver(alone_, "label_type: NONE ignore_label: 9 " + resize);
    testing::SourceDriver pixels = Driver(pairs_, "label_type: PIXEL " + resize);
    for (testing::SourceDriver* driver : {&of_image, &none, &pixels}) driver->Forward();
    EXPECT_EQ(of_image.value(0), pixels.value(0));
    EXPECT_EQ(none.value(0), pixels.value(0));
    EXPECT_EQ(of_image.value(2), pixels.value(2));
    EXPECT_EQ(of_image.value(2)[0], resize.empty() ? 16 : 13);
    for (size_t at = 0; at < pixels.value(1).size(); ++at) {
      const auto image = static_cast<float>(at / (kCrop * kCrop));
      ASSERT_EQ(of_image.value(1)[at], pixels.value(1)[at] == kBorder ? kBorder : image) << at;
    }
    EXPECT_EQ(none.value(1), std::vector<float>(4 * kCrop * kCrop, 9));
  }
}

TEST_F(ImageSegDataTest, FewerTops) {
  testing::SourceDriver three = Driver(pairs_, "label_type: PIXEL");
  testing::SourceDriver two = Driver(pairs_, "label_type: PIXEL", "", TEST, R"(top: "d" top: "l")");
  for (testing::SourceDriver* driver : {&three, &two}) driver->Forward();
  EXPECT_EQ(two.value(0), three.value(0));
  EXPECT_EQ(two.value(1), three.value(1));
  std::filesystem::remove_all(folder_ / "seg/labels");
  testing::SourceDriver one = Driver(pairs_, "label_type: PIXEL", "", TEST, R"(top: "d")");
  one.Forward();
  EXPECT_EQ(one.value(0), three.value(0));
}

// Without crop_size nothing gets a border.
TEST_F(ImageSegDataTest, ExtentsOfWholeImages) {
  testing::SourceDriver driver = Driver("/the images/1.png 1\n", "", "crop_size: 0", TEST);
  driver.Forward();
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 1, 8, 9}));
  EXPECT_EQ(driver.value(2), (std::vector<float>{8, 9, 8, 9, 8, 9, 8, 9}));
}

TEST_F(ImageSegDataTest, MistakesAreNamed) {
  ExpectThrows<UserError>([&] { Driver("a.png 1\nb.png 256\n", ""); },
                          {"list.txt:2", "the label 256 is not from 0 to 255"});
  ExpectThrows<UserError>([&] { Driver("a.png -1\n", ""); }, {"list.txt:1", "the label -1 is not from 0 to 255"});
  ExpectThrows<UserError>([&] { Driver("a.png\n", "label_type: PIXEL"); },
                          {"list.txt:1", "expected \"image label_image\""});
  ExpectThrows<UserError>([&] { Driver(pairs_, ""); },
                          {"list.txt:4", "the label \"/labels/3.png\" is no whole number", "set label_type: PIXEL"});
  ExpectThrows<UserError>([&] { Driver("a.png\n", ""); }, {"list.txt:1", "expected \"path label\""});
  ExpectThrows<UserError>([&] { Driver("\n", "label_type: NONE"); }, {"list.txt", "one path of an image per line"});
  const auto forward = [&](const std::string& list, const std::string& fields) {
    testing::SourceDriver driver = Driver(list, fields);
    driver.Forward();
  };
  ExpectThrows<UserError>([&] { forward(pairs_, "label_type: NONE"); }, {"0.png /labels/0.png\"", "does not exist"});
  ExpectThrows<UserError>([&] { forward("/the images/1.png /labels/0.png\n", "label_type: PIXEL"); },
                          {"label image", "0.png", "is 24x30, but image", "list.txt:1) is 8x9"});
}

}  // namespace
}  // namespace crema
