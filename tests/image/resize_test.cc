#include "image/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "image/reference.h"

namespace crema {
namespace {

using testing::Interpolated;
using testing::Noise;

TEST(Resize, EqualsInterpolationUpToRounding) {
  ResizeBuffers buffers;
  Image to;
  for (const int channels : {1, 3}) {
    const Image from = Noise(37, 53, channels);
    for (const ImageArea& area : {ImageArea{0, 0, 37, 53}, ImageArea{5, 9, 20, 30}, ImageArea{36, 52, 1, 1}}) {
      for (const auto& [height, width] : {std::pair{16, 16}, {64, 100}, {37, 20}, {1, 1}, {80, 53}}) {
        ResizeBilinear(from, area, height, width, &buffers, &to);
        ASSERT_EQ(to.height, height);
        ASSERT_EQ(to.width, width);
        for (int y = 0; y < height; ++y) {
          for (int x = 0; x < width; ++x) {
            const double row = (y + 0.5) * area.height / height - 0.5, column = (x + 0.5) * area.width / width - 0.5;
            for (int c = 0; c < channels; ++c) {
              ASSERT_NEAR(to.row(y)[x * channels + c], Interpolated(from, area, row, column, c), 1.01)
                  << y << "," << x << " of " << height << "x" << width;
            }
          }
        }
      }
    }
  }
}

TEST(Resize, AreasMayBeginAndEndBetweenPixels) {
  ResizeBuffers buffers;
  Image to, whole;
  for (const int channels : {1, 3}) {
    const Image from = Noise(37, 53, channels);
    for (const RealArea& area : {RealArea{0, 0, 37, 53}, RealArea{5.25, 9.5, 20.125, 30.75},
                                 RealArea{0, 0.5, 36.6, 52.5}, RealArea{17.5, 3.25, 0.5, 9}}) {
      for (const auto& [height, width] : {std::pair{16, 16}, {64, 100}, {1, 1}, {20, 30}}) {
        ResizeRealArea(from, area, height, width, &buffers, &to);
        ASSERT_EQ(to.height, height);
        ASSERT_EQ(to.width, width);
        for (int y = 0; y < height; ++y) {
          for (int x = 0; x < width; ++x) {
            const double row = area.top + (y + 0.5) * area.height / height - 0.5,
                         column = area.left + (x + 0.5) * area.width / width - 0.5;
            for (int c = 0; c < channels; ++c) {
              ASSERT_NEAR(to.row(y)[x * channels + c], Interpolated(from, {0, 0, 37, 53}, row, column, c), 1.01)
                  << y << "," << x << " of " << height << "x" << width;
            }
          }
        }
      }
    }
    ResizeRealArea(from, {0, 0, 37, 53}, 16, 20, &buffers, &to);
    ResizeBilinear(from, 16, 20, &buffers, &whole);
    EXPECT_TRUE(
        std::equal(to.pixels.begin(), to.pixels.begin() + static_cast<ptrdiff_t>(to.size()), whole.pixels.begin()));
  }
}

TEST(Resize, HalvingTakesMeansOfFour) {
  const Image from = Noise(8, 12, 3);
  ResizeBuffers buffers;
  Image to;
  ResizeBilinear(from, {2, 4, 6, 8}, 3, 4, &buffers, &to);
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) {
      const uint8_t *a = from.row(2 + 2 * y) + (4 + 2 * x) * 3, *b = a + from.row_bytes();
      EXPECT_EQ(to.row(y)[x * 3], (a[0] + a[3] + b[0] + b[3] + 2) / 4);
    }
  }
}

TEST(Resize, TheSameSizeIsACopy) {
  const Image from = Noise(9, 7, 3);
  ResizeBuffers buffers;
  Image to;
  ResizeBilinear(from, 9, 7, &buffers, &to);
  EXPECT_TRUE(std::equal(from.pixels.begin(), from.pixels.begin() + static_cast<long>(from.size()), to.pixels.begin()));
}

TEST(Resize, AFramedImageNeedsNoCanvas) {
  ResizeBuffers buffers;
  Image expected, to;
  for (const int channels : {1, 3, 4}) {
    const Image from = Noise(20, 30, channels);
    const std::vector<uint8_t> each = {10, 200, 77, 3}, all = {99};
    for (const ImageArea& seen : {ImageArea{0, 0, 20, 30}, ImageArea{3, 5, 11, 7}, ImageArea{}}) {
      for (const auto& [top, left] : {std::pair{0, 0}, {4, 9}, {20, 10}}) {
        for (const bool one_color : {false, true}) {
          const std::span<const uint8_t> color = one_color ? all : std::span(each).first(channels);
          const FramedImage framed{from, seen, top, left, 40, 60, color};
          Image canvas;
          canvas.Resize(40, 60, channels);
          for (size_t i = 0; i < canvas.size(); ++i) canvas.pixels[i] = color[one_color ? 0 : i % channels];
          for (int y = 0; y < seen.height; ++y) {
            std::copy_n(from.row(seen.top + y) + seen.left * channels, seen.width * channels,
                        canvas.row(top + y) + left * channels);
          }
          for (const auto& [height, width] : {std::pair{40, 60}, {20, 30}, {17, 23}, {55, 61}, {1, 100}}) {
            ResizeBilinear(canvas, height, width, &buffers, &expected);
            ResizeBilinear(framed, height, width, &buffers, &to);
            ASSERT_EQ(to.size(), expected.size());
            ASSERT_TRUE(std::equal(to.pixels.begin(), to.pixels.begin() + static_cast<long>(to.size()),
                                   expected.pixels.begin()))
                << height << " x " << width << ", " << channels << " channels, from " << top << ", " << left;
          }
        }
      }
    }
  }
}

TEST(Resize, ShorterSidesKeepProportions) {
  EXPECT_EQ(WithShorterSide(480, 640, 256).height, 256);
  EXPECT_EQ(WithShorterSide(480, 640, 256).width, 341);
  EXPECT_EQ(WithShorterSide(640, 480, 256).height, 341);
  EXPECT_EQ(WithShorterSide(3, 3000, 1).width, 1000);
  EXPECT_EQ(WithShorterSide(100, 100, 32).width, 32);
}

}  // namespace
}  // namespace crema
