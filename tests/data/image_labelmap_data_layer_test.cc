// Image files with targets of pixels: the layer ImageLabelmapData.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema {
namespace {

using testing::ExpectThrows;

constexpr int kHeight = 16, kWidth = 20;

class ImageLabelmapDataTest : public ::testing::Test {
 protected:
  // One image, whose target in row y and column x is 16 y + x, in grey and in colours; and its path twice.
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "maps");
    Image grey, coloured;
    grey.Resize(kHeight, kWidth, 1);
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) grey.row(y)[x] = ValueAt(y, x);
    }
    coloured.Resize(kHeight, kWidth, 3);
    for (size_t i = 0; i < coloured.size(); ++i) coloured.pixels[i] = grey.pixels[i / 3];
    testing::WriteFile(folder_ / "maps/image.png", testing::Png(coloured));
    testing::WriteFile(folder_ / "maps/grey.png", testing::Png(grey));
    testing::WriteFile(folder_ / "maps/coloured.png", testing::Png(coloured));
    WriteList("image.png grey.png\nimage.png coloured.png\n");
  }

  static uint8_t ValueAt(int y, int x) { return static_cast<uint8_t>(16 * y + std::min(x, 15)); }

  void WriteList(const std::string& text) const { testing::WriteFile(folder_ / "list.txt", text); }

  testing::SourceDriver Driver(const std::string& fields = "", const std::string& transform = "",
                               Phase phase = TEST) const {
    return testing::SourceDriver("ImageLabelmapData",
                                 "top: \"data\" top: \"label\" image_data_param { source: \"" + folder_ / "list.txt" +
                                     "\" root_folder: \"" + folder_ / "maps/" + "\" batch_size: 2 " + fields +
                                     " } transform_param { " + transform + " }",
                                 phase);
  }

  const TemporaryFolder folder_;
};

TEST_F(ImageLabelmapDataTest, TargetsAreWhatLabelmapSays) {
  const auto expect = [&](const std::string& fields, const auto& target_of) {
    SCOPED_TRACE(fields);
    testing::SourceDriver driver = Driver(fields);
    driver.Forward();
    EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{2, 1, kHeight, kWidth}));
    const std::vector<float>& targets = driver.value(1);
    const std::vector<float>& data = driver.value(0);
    for (int item = 0; item < 2; ++item) {
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          const auto at = static_cast<size_t>((item * kHeight + y) * kWidth + x);
          ASSERT_EQ(targets[at], target_of(ValueAt(y, x))) << item << ": " << y << "," << x;
          ASSERT_EQ(data[static_cast<size_t>(((item * 3 + 1) * kHeight + y) * kWidth + x)], ValueAt(y, x));
        }
      }
    }
  };
  const auto binary = [](int value) { return value >= 128 ? 1.0F : 0.0F; };
  const auto number = [](int value) { return static_cast<float>(value); };
  expect("", binary);
  expect("normalize: true", binary);
  expect("normalize: false", number);
  expect("labelmap: NUMBERS", number);
  expect("labelmap: WEAK", [](int value) { return value >= 128 ? 1.0F : static_cast<float>(value) / 255; });
}

TEST_F(ImageLabelmapDataTest, TargetsGoWithTheirPixels) {
  // Of the border, too, which is 0 in images and ignore_label in targets.
  testing::SourceDriver driver =
      Driver("labelmap: NUMBERS ignore_label: 7 shuffle: true", "mirror: true crop_size: 19 pad: 3", TRAIN);
  bool bordered = false;
  for (int i = 0; i < 8; ++i) {
    driver.Forward();
    for (size_t item = 0; item < 2; ++item) {
      for (size_t at = 0; at < 19 * 19; ++at) {
        const float pixel = driver.value(0)[item * 3 * 19 * 19 + at], target = driver.value(1)[item * 19 * 19 + at];
        bordered = bordered || (pixel == 0 && target == 7);
        ASSERT_TRUE(target == pixel || (pixel == 0 && target == 7)) << target << " at " << pixel;
      }
    }
  }
  EXPECT_TRUE(bordered);
}

TEST_F(ImageLabelmapDataTest, SmallImagesGetABorder) {
  testing::SourceDriver driver = Driver("", "crop_size: 24");
  driver.Forward();
  const std::vector<float>& targets = driver.value(1);
  EXPECT_EQ(targets[0], 0);
  EXPECT_EQ(targets[15 * 24 + 19], 1);
  EXPECT_EQ(targets[15 * 24 + 20], 255);
  EXPECT_EQ(targets[16 * 24], 255);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), 255.0F), 2 * (24 * 24 - kHeight * kWidth));
}

TEST_F(ImageLabelmapDataTest, MistakesAreNamed) {
  ExpectThrows<UserError>([&] { Driver("label_type: PIXEL"); },
                          {"label_type is for labels of pixels, which layer \"ImageSegData\" gives"});
  ExpectThrows<UserError>([&] { Driver("label_count: 2"); }, {"label_count is for numbers of a whole image"});
  ExpectThrows<UserError>([&] { Driver("normalize: true labelmap: WEAK"); },
                          {"normalize and labelmap are both set", "keep labelmap"});
  Image other;
  other.Resize(3, 4, 1);
  testing::WriteFile(folder_ / "maps/other.png", testing::Png(other));
  WriteList("image.png other.png\n");
  ExpectThrows<UserError>([&] { Driver().Forward(); }, {"label image", "other.png\"", "is 3x4", "16x20"});
}

}  // namespace
}  // namespace crema
