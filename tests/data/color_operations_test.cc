// Operations on colours against what Pillow 13.0 makes of the same images: ImageEnhance's Brightness, Color, Contrast
// and Sharpness, and ImageOps' posterize, solarize, autocontrast and equalize, with blue and red exchanged; and against
// their formulas in double precision.
#include "data/transforms/color_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "data/image_testing.h"

namespace crema {
namespace {

using testing::Photograph;

SeenImage Seen(Image image) {
  SeenImage seen;
  seen.runs.assign(static_cast<size_t>(image.height), PixelRun{0, image.width});
  seen.border.assign(static_cast<size_t>(image.channels), 99);
  seen.image = std::move(image);
  return seen;
}

std::vector<uint8_t> Pixels(const Image& image) {
  return {image.pixels.begin(), image.pixels.begin() + static_cast<int64_t>(image.size())};
}

// The image that was given to Pillow.
Image Pattern() {
  Image image;
  image.Resize(4, 5, 3);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 5; ++x) {
      for (int c = 0; c < 3; ++c) {
        image.row(y)[3 * x + c] = static_cast<uint8_t>(x * 53 + y * 91 + c * 37 + x * y * 17);
      }
    }
  }
  return image;
}

TEST(ColorOperations, AreThoseOfPillow) {
  const struct {
    std::function<void(SeenImage*)> change;
    std::vector<uint8_t> expected;
  } cases[] = {
      {[](SeenImage* seen) { ChangeBrightness(1.5, seen); },
       {0,   55,  111, 79, 135, 190, 159, 214, 255, 238, 255, 255, 255, 255, 45,  136, 192, 247, 241, 255,
        255, 255, 18,  73, 67,  123, 178, 172, 228, 255, 255, 255, 0,   19,  75,  130, 150, 205, 255, 255,
        255, 7,   27,  82, 138, 25,  81,  136, 181, 237, 255, 255, 9,   64,  109, 165, 220, 255, 255, 255}},
      {[](SeenImage* seen) { ChangeBrightness(0.35, seen); },
       {0,  12, 25, 18, 31, 44, 37, 50, 63, 55, 68, 81, 74, 87, 10, 31, 44, 57, 56, 69,
        82, 80, 4,  17, 15, 28, 41, 40, 53, 66, 63, 76, 0,  4,  17, 30, 35, 47, 60, 65,
        78, 1,  6,  19, 32, 5,  18, 31, 42, 55, 68, 78, 2,  15, 25, 38, 51, 61, 74, 87}},
      {[](SeenImage* seen) { ChangeColor(1.63, seen); },
       {0,   32,  92, 25, 85,  145, 78,  138, 198, 131, 191, 251, 232, 255, 0,  63,  123, 183, 133, 193,
        253, 255, 0,  49, 17,  77,  137, 87,  147, 207, 202, 255, 0,   0,   45, 105, 72,  132, 192, 207,
        255, 0,   0,  50, 110, 0,   49,  109, 93,  153, 213, 255, 0,   43,  45, 105, 165, 149, 209, 255}},
      {[](SeenImage* seen) { ChangeColor(0.1, seen); },
       {39,  43,  47, 92, 96, 100, 145, 149, 153, 198, 202, 206, 182, 186, 164, 130, 134, 138, 200, 204,
        208, 66,  44, 48, 84, 88,  92,  154, 158, 162, 152, 156, 134, 52,  56,  60,  139, 143, 147, 157,
        161, 139, 57, 61, 65, 56,  60,  64,  160, 164, 168, 60,  38,  42,  112, 116, 120, 216, 220, 224}},
      {[](SeenImage* seen) { ChangeContrast(1.27, seen); },
       {0,   13,  60, 33, 80, 127, 101, 148, 195, 168, 215, 255, 235, 255, 4,  82,  129, 176, 170, 217,
        255, 255, 0,  28, 23, 70,  117, 112, 159, 206, 197, 244, 0,   0,   30, 77,  93,  140, 187, 204,
        251, 0,   0,  36, 83, 0,   35,  82,  120, 167, 214, 252, 0,   21,  59, 106, 153, 191, 238, 255}},
      {[](SeenImage* seen) { ChangeContrast(0.4, seen); },
       {74,  89,  104, 95, 110, 125, 116, 131, 146, 138, 152, 167, 159, 174, 86,  110, 125, 140, 138, 153,
        168, 166, 79,  94, 92,  107, 122, 120, 135, 150, 147, 162, 74,  79,  94,  109, 114, 129, 144, 149,
        164, 76,  81,  96, 111, 81,  96,  110, 122, 137, 152, 164, 76,  91,  103, 118, 133, 145, 160, 174}},
      {[](SeenImage* seen) { ChangeSharpness(1.9, seen); },
       {0,   37,  74, 53, 90, 127, 106, 143, 180, 159, 196, 233, 212, 249, 30, 91,  128, 165, 196, 251,
        255, 255, 0,  0,  0,  46,  119, 115, 152, 189, 182, 219, 0,   0,   14, 69,  82,  155, 209, 222,
        255, 0,   18, 55, 92, 17,  54,  91,  121, 158, 195, 225, 6,   43,  73, 110, 147, 177, 214, 251}},
      {[](SeenImage* seen) { ChangeSharpness(0.1, seen); },
       {0,   37,  74, 53,  90, 127, 106, 143, 180, 159, 196, 233, 212, 249, 30, 91,  128, 165, 125, 144,
        163, 159, 83, 102, 98, 117, 119, 115, 152, 189, 182, 219, 0,   84,  85, 105, 118, 119, 138, 151,
        152, 76,  18, 55,  92, 17,  54,  91,  121, 158, 195, 225, 6,   43,  73, 110, 147, 177, 214, 251}},
      {[](SeenImage* seen) { Posterize(3, seen); },
       {0,   32,  64, 32, 64, 96, 96, 128, 160, 128, 192, 224, 192, 224, 0,  64, 128, 160, 160, 192,
        224, 224, 0,  32, 32, 64, 96, 96,  128, 160, 160, 192, 0,   0,   32, 64, 96,  128, 160, 160,
        224, 0,   0,  32, 64, 0,  32, 64,  96,  128, 192, 224, 0,   32,  64, 96, 128, 160, 192, 224}},
      {[](SeenImage* seen) { Solarize(179, seen); },
       {0,  37, 74, 53, 90, 127, 106, 143, 75,  159, 59, 22, 43, 6,  30, 91,  128, 165, 161, 57,
        20, 24, 12, 49, 45, 82,  119, 115, 152, 66,  73, 36, 0,  13, 50, 87,  100, 137, 174, 68,
        31, 5,  18, 55, 92, 17,  54,  91,  121, 158, 60, 30, 6,  43, 73, 110, 147, 177, 41,  4}},
  };
  for (const auto& [change, expected] : cases) {
    SCOPED_TRACE(&change - &cases[0].change);
    SeenImage seen = Seen(Pattern());
    change(&seen);
    EXPECT_EQ(Pixels(seen.image), expected);
  }
}

// Pillow computes in floating point, which comes out a little below some whole numbers, here the largest, and so one
// lower.
TEST(ColorOperations, AutoContrastIsThatOfPillow) {
  SeenImage seen = Seen(Pattern());
  for (uint8_t& value : seen.image.pixels) value = static_cast<uint8_t>(value / 2 + 30);
  AutoContrast(&seen);
  const std::vector<uint8_t> expected = {0,   31,  75,  57,  88,  128, 117, 143, 183, 175, 200, 236, 235, 254, 30,
                                         99,  128, 167, 177, 202, 238, 255, 6,   48,  48,  80,  120, 126, 153, 191,
                                         201, 223, 0,   13,  46,  87,  110, 136, 177, 206, 229, 4,   19,  50,  93,
                                         17,  50,  91,  133, 160, 197, 248, 0,   42,  79,  109, 148, 195, 219, 255};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(seen.image.pixels[i], expected[i] == 254 ? 255 : expected[i]) << i;
  }
}

TEST(ColorOperations, EqualizeIsThatOfPillow) {
  Image image;
  image.Resize(40, 40, 1);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 40; ++x) image.row(y)[x] = static_cast<uint8_t>(x * y % 97 + 20);
  }
  SeenImage seen = Seen(image);
  Equalize(&seen);
  // Of 20 to 116.
  const std::vector<uint8_t> expected = {
      0,   13,  16,  19,  21,  24,  27,  30,  32,  35,  38,  41,  44,  46,  49,  51,  55,  58,  60,  64,
      66,  69,  72,  76,  79,  82,  84,  88,  90,  93,  96,  100, 102, 105, 107, 110, 113, 116, 118, 120,
      123, 126, 128, 130, 134, 136, 139, 142, 146, 149, 151, 153, 155, 157, 159, 162, 165, 168, 170, 173,
      175, 179, 181, 184, 186, 189, 191, 195, 196, 198, 201, 203, 206, 209, 211, 213, 215, 217, 220, 223,
      225, 228, 230, 231, 234, 237, 240, 242, 244, 247, 249, 252, 254, 255, 255, 255, 255};
  for (size_t i = 0; i < image.size(); ++i) ASSERT_EQ(seen.image.pixels[i], expected[image.pixels[i] - 20]);
}

// In double precision, v towards `from`; whole numbers that rounding brought a little below themselves stay.
int Blended(double from, double value, double factor) {
  return static_cast<int>(std::clamp(from + (value - from) * factor + 1e-4, 0.0, 255.0));
}

TEST(ColorOperations, EveryFactorIsThatOfAFormula) {
  for (const int channels : {1, 3}) {
    const Image image = Photograph(13, 37, channels);
    for (int step = -30; step <= 30; ++step) {
      const double factor = 1 + step * 0.033;
      SeenImage bright = Seen(image), sharp = Seen(image), color = Seen(image), contrast = Seen(image);
      ChangeBrightness(factor, &bright);
      ChangeSharpness(factor, &sharp);
      ChangeColor(factor, &color);
      ChangeContrast(factor, &contrast);
      double sum = 0;
      const auto luminance = [&](const uint8_t* pixel) {
        return channels == 1 ? pixel[0] : std::floor(0.1140 * pixel[0] + 0.5870 * pixel[1] + 0.2990 * pixel[2] + 0.5);
      };
      for (int i = 0; i < 13 * 37; ++i) sum += luminance(image.pixels.data() + i * channels);
      const double mean = std::floor(sum / (13 * 37) + 0.5);
      for (int y = 0; y < 13; ++y) {
        for (int i = 0; i < 37 * channels; ++i) {
          const int x = i / channels;
          const double value = image.row(y)[i], grey = luminance(image.row(y) + x * channels);
          ASSERT_NEAR(bright.image.row(y)[i], Blended(0, value, factor), 0);
          ASSERT_NEAR(contrast.image.row(y)[i], Blended(mean, value, factor), 0);
          ASSERT_NEAR(color.image.row(y)[i], channels == 1 ? value : Blended(grey, value, factor), 1);
          double around = 4 * value;
          for (int v = -1; v <= 1; ++v) {
            for (int u = -1; u <= 1 && y > 0 && y < 12 && x > 0 && x < 36; ++u) {
              around += image.row(y + v)[i + u * channels];
            }
          }
          const bool inner = y > 0 && y < 12 && x > 0 && x < 36;
          const double smooth = inner ? std::floor(around / 13 + 0.5) : value;
          ASSERT_NEAR(sharp.image.row(y)[i], Blended(smooth, value, factor), 0);
        }
      }
    }
  }
}

TEST(ColorOperations, EveryBitAndThreshold) {
  Image image;
  image.Resize(16, 16, 1);
  for (size_t i = 0; i < 256; ++i) image.pixels[i] = static_cast<uint8_t>(i);
  for (int bits = 1; bits <= 8; ++bits) {
    SeenImage seen = Seen(image);
    Posterize(bits, &seen);
    for (int i = 0; i < 256; ++i) EXPECT_EQ(seen.image.pixels[static_cast<size_t>(i)], i >> (8 - bits) << (8 - bits));
  }
  for (const int threshold : {0, 1, 128, 255}) {
    SeenImage seen = Seen(image);
    Solarize(threshold, &seen);
    for (int i = 0; i < 256; ++i) EXPECT_EQ(seen.image.pixels[static_cast<size_t>(i)], i < threshold ? i : 255 - i);
  }
}

TEST(ColorOperations, OneColorStaysWhereThereIsNothingToSpread) {
  for (const int channels : {1, 3}) {
    Image image;
    image.Resize(20, 20, channels);
    std::fill(image.pixels.begin(), image.pixels.end(), 7);
    SeenImage seen = Seen(image);
    AutoContrast(&seen);
    Equalize(&seen);
    ChangeContrast(0.3, &seen);
    ChangeSharpness(1.9, &seen);
    ChangeColor(1.9, &seen);
    EXPECT_EQ(Pixels(seen.image), Pixels(image));
  }
}

// What is not covered neither counts nor changes.
TEST(ColorOperations, OnlyWhatIsSeenCounts) {
  const std::function<void(SeenImage*)> changes[] = {[](SeenImage* seen) { ChangeBrightness(1.5, seen); },
                                                     [](SeenImage* seen) { ChangeColor(0.3, seen); },
                                                     [](SeenImage* seen) { ChangeContrast(1.7, seen); },
                                                     [](SeenImage* seen) { Posterize(2, seen); },
                                                     [](SeenImage* seen) { Solarize(90, seen); },
                                                     AutoContrast,
                                                     Equalize};
  for (const int channels : {1, 3}) {
    const Image image = Photograph(30, 30, channels);
    // Rows 4 to 29 of columns 3 to 28; the whole of these as an image of its own.
    Image part;
    part.Resize(26, 26, channels);
    for (int y = 0; y < 26; ++y) std::copy_n(image.row(y + 4) + 3 * channels, 26 * channels, part.row(y));
    for (const auto& change : changes) {
      SeenImage seen = Seen(image), alone = Seen(part);
      std::fill_n(seen.runs.begin(), 4, PixelRun{});
      std::fill_n(seen.runs.begin() + 4, 26, PixelRun{3, 26});
      seen.RestoreBorder();
      EXPECT_FALSE(seen.covers());
      EXPECT_TRUE(alone.covers());
      change(&seen);
      change(&alone);
      for (int y = 0; y < 30; ++y) {
        for (int i = 0; i < 30 * channels; ++i) {
          const int x = i / channels;
          const bool covered = y >= 4 && x >= 3 && x < 29;
          ASSERT_EQ(seen.image.row(y)[i], covered ? alone.image.row(y - 4)[i - 3 * channels] : 99);
        }
      }
    }
  }
}

TEST(ColorOperations, TakeSmallImages) {
  for (const auto& [height, width] : {std::pair(1, 1), {1, 9}, {9, 1}, {2, 2}, {3, 3}}) {
    for (const int channels : {1, 3}) {
      SeenImage seen = Seen(Photograph(height, width, channels));
      ChangeSharpness(0.1, &seen);
      ChangeContrast(0.1, &seen);
      ChangeColor(0.1, &seen);
      AutoContrast(&seen);
      Equalize(&seen);
      std::fill(seen.runs.begin(), seen.runs.end(), PixelRun{});
      ChangeContrast(0.1, &seen);
      AutoContrast(&seen);
      Equalize(&seen);
      EXPECT_EQ(seen.image.height, height);
    }
  }
}

}  // namespace
}  // namespace crema
