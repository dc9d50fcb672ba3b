#include "image/resizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "image/reference.h"

namespace crema {
namespace {

using testing::Noise;

constexpr ImageArea kPart{3, 2, 12, 20};

Resizer Fitting(ImageBorder::Kind kind, std::vector<uint8_t> color = {}) {
  return Resizer(ImageBorder{kind, std::move(color)});
}

TEST(Resizer, AloneStretches) {
  const Resizer resizer;
  EXPECT_FALSE(resizer.keeps_proportions());
  EXPECT_EQ(resizer.PlaceOf({10, 20}, {5, 5}), (ImageArea{0, 0, 5, 5}));
  const Image from = Noise(20, 30, 3);
  ResizeBuffers buffers;
  Image to, stretched;
  resizer.Resize(from, kPart, {9, 7}, &buffers, &to);
  ResizeBilinear(from, kPart, 9, 7, &buffers, &stretched);
  EXPECT_EQ(to.pixels, stretched.pixels);
}

TEST(Resizer, FitsIntoTheMiddle) {
  const Resizer resizer = Fitting(ImageBorder::Kind::kNearest);
  const auto place = [&](ImageExtent image, ImageExtent whole) { return resizer.PlaceOf(image, whole); };
  EXPECT_EQ(place({375, 500}, {300, 300}), (ImageArea{37, 0, 225, 300}));
  EXPECT_EQ(place({500, 375}, {300, 300}), (ImageArea{0, 37, 300, 225}));
  EXPECT_EQ(place({10, 10}, {4, 9}), (ImageArea{0, 2, 4, 4}));
  EXPECT_EQ(place({2, 4}, {100, 201}), (ImageArea{0, 0, 100, 200}));
  EXPECT_EQ(place({1, 5000}, {30, 30}), (ImageArea{14, 0, 1, 30}));
  for (int height = 1; height < 80; height += 3) {
    for (int width = 1; width < 80; width += 7) {
      const ImageArea same = place({height, width}, {height, width});
      ASSERT_EQ(same, (ImageArea{0, 0, height, width}));
      const ImageArea area = place({height, width}, {61, 47});
      ASSERT_TRUE(area.height == 61 || area.width == 47);
      ASSERT_TRUE(std::abs(area.height - 47.0 * height / width) <= 1 ||
                  std::abs(area.width - 61.0 * width / height) <= 1);
    }
  }
}

// Pixel (y, x) of the result is that one of what was resized, or the colour where it lies in none.
TEST(Resizer, FillsTheRest) {
  const std::vector<uint8_t> color = {7, 8, 9};
  ResizeBuffers buffers;
  Image to, inner;
  for (const int channels : {1, 3}) {
    const Image from = Noise(20, 30, channels);
    for (const auto& [height, width] : {std::pair{40, 15}, {9, 40}, {12, 20}, {50, 3}}) {
      for (const auto kind : {ImageBorder::Kind::kColor, ImageBorder::Kind::kMirrored, ImageBorder::Kind::kNearest}) {
        const Resizer resizer = Fitting(kind, {color.begin(), color.begin() + channels});
        resizer.Resize(from, kPart, {height, width}, &buffers, &to);
        ASSERT_EQ(to.height, height);
        ASSERT_EQ(to.width, width);
        ASSERT_EQ(to.channels, channels);
        const ImageArea place = resizer.PlaceOf({kPart.height, kPart.width}, {height, width});
        ResizeBilinear(from, kPart, place.height, place.width, &buffers, &inner);
        const auto shown = [&](int i, int extent) {
          if (kind == ImageBorder::Kind::kNearest) return std::clamp(i, 0, extent - 1);
          while (i < 0 || i >= extent) i = extent == 1 ? 0 : i < 0 ? -i : 2 * (extent - 1) - i;
          return i;
        };
        for (int y = 0; y < height; ++y) {
          for (int x = 0; x < width; ++x) {
            const int row = y - place.top, column = x - place.left;
            const bool inside = row >= 0 && row < place.height && column >= 0 && column < place.width;
            for (int c = 0; c < channels; ++c) {
              const int expected = kind == ImageBorder::Kind::kColor && !inside
                                       ? color[static_cast<size_t>(c)]
                                       : inner.row(shown(row, place.height))[shown(column, place.width) * channels + c];
              ASSERT_EQ(to.row(y)[x * channels + c], expected) << y << "," << x << " of " << height << "x" << width;
            }
          }
        }
      }
    }
  }
}

TEST(Resizer, FitsFramedImagesByTheirFrames) {
  const Image from = Noise(20, 30, 3);
  const std::vector<uint8_t> grey = {100};
  const FramedImage framed{from, kPart, 5, 9, 24, 60, grey};
  Image canvas;
  canvas.Resize(24, 60, 3);
  std::fill(canvas.pixels.begin(), canvas.pixels.end(), grey[0]);
  for (int y = 0; y < kPart.height; ++y) {
    std::copy_n(from.row(kPart.top + y) + kPart.left * 3, kPart.width * 3, canvas.row(5 + y) + 9 * 3);
  }
  const Resizer resizer = Fitting(ImageBorder::Kind::kMirrored);
  ResizeBuffers buffers;
  Image of_framed, of_canvas;
  resizer.Resize(framed, {33, 31}, &buffers, &of_framed);
  resizer.Resize(canvas, {0, 0, 24, 60}, {33, 31}, &buffers, &of_canvas);
  EXPECT_EQ(of_framed.pixels, of_canvas.pixels);
}

}  // namespace
}  // namespace crema
