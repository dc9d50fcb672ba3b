#include "image/codec.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "crema/error.h"
#include "image/damaged_files.h"
#include "image/formats.h"

namespace crema {
namespace {

using Colors = DecodeOptions::Colors;

// Smooth, so that JPEG keeps it nearly as it is.
Image Gradient(int height, int width, int channels) {
  Image image;
  image.Resize(height, width, channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        image.row(y)[x * channels + c] = static_cast<uint8_t>(40 + 150 * y / height + 20 * x / width + 20 * c);
      }
    }
  }
  return image;
}

int LargestDifference(const Image& a, const Image& b) {
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.channels, b.channels);
  int largest = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

Image Decoded(const std::vector<uint8_t>& bytes, DecodeOptions options = {.colors = Colors::kAsStored}) {
  Image image;
  EXPECT_EQ(DecodeImage(bytes, options, &image), "");
  return image;
}

// A TIFF structure with the orientation.
std::vector<uint8_t> Exif(int orientation, bool big_endian) {
  std::vector<uint8_t> tiff = big_endian ? std::vector<uint8_t>{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 2}
                                         : std::vector<uint8_t>{'I', 'I', 42, 0, 8, 0, 0, 0, 2, 0};
  const auto entry = [&](int tag, int value) {
    const auto u16 = [&](int number) {
      const auto high = static_cast<uint8_t>(number >> 8), low = static_cast<uint8_t>(number & 255);
      tiff.insert(tiff.end(), {big_endian ? high : low, big_endian ? low : high});
    };
    u16(tag);
    u16(3);  // SHORT
    if (big_endian) u16(0);
    u16(1);
    if (!big_endian) u16(0);
    u16(value);
    u16(0);
  };
  entry(0x0100, 640);
  entry(0x0112, orientation);
  return tiff;
}

// A JPEG with an APP1 segment behind its first marker.
std::vector<uint8_t> WithExif(std::vector<uint8_t> jpeg, int orientation, bool big_endian) {
  const std::vector<uint8_t> tiff = Exif(orientation, big_endian);
  std::vector<uint8_t> segment = {0xff, 0xe1, 0, static_cast<uint8_t>(2 + 6 + tiff.size()), 'E', 'x', 'i', 'f', 0, 0};
  segment.insert(segment.end(), tiff.begin(), tiff.end());
  jpeg.insert(jpeg.begin() + 2, segment.begin(), segment.end());
  return jpeg;
}

TEST(Codec, PngKeepsEveryPixel) {
  for (const int channels : {1, 3}) {
    const Image image = Gradient(7, 13, channels);
    EXPECT_EQ(LargestDifference(Decoded(EncodePng(image)), image), 0);
  }
}

TEST(Codec, JpegKeepsWhatIsSmooth) {
  for (const int channels : {1, 3}) {
    const Image image = Gradient(45, 60, channels);
    EXPECT_LE(LargestDifference(Decoded(EncodeJpeg(image)), image), 4);
  }
}

TEST(Codec, ColoursAreAsAskedFor) {
  const Image colour = Gradient(16, 16, 3), grey = Gradient(16, 16, 1);
  for (const auto& encode : {+[](const Image& image) { return EncodePng(image); },
                             +[](const Image& image) { return EncodeJpeg(image, 100); }}) {
    EXPECT_EQ(Decoded(encode(colour), {.colors = Colors::kGray}).channels, 1);
    const Image made = Decoded(encode(grey), {.colors = Colors::kColor});
    ASSERT_EQ(made.channels, 3);
    EXPECT_EQ(made.pixels[0], made.pixels[1]);
    EXPECT_EQ(made.pixels[0], made.pixels[2]);
    // BT.601 of a pixel whose channels are 20 apart, blue first.
    const Image mean = Decoded(encode(colour), {.colors = Colors::kGray});
    EXPECT_NEAR(mean.pixels[0], 0.114 * 40 + 0.587 * 60 + 0.299 * 80, 2);
  }
}

TEST(Codec, JpegIsDecodedSmaller) {
  const std::vector<uint8_t> bytes = EncodeJpeg(Gradient(45, 61, 3));
  for (const int reduction : {2, 4, 8}) {
    const Image image = Decoded(bytes, {.reduction = reduction});
    EXPECT_EQ(image.height, (45 + reduction - 1) / reduction);
    EXPECT_EQ(image.width, (61 + reduction - 1) / reduction);
  }
}

TEST(Codec, PhotographsAreTurnedUpright) {
  // The corners of the upright image, clockwise from the upper left, as they lie in the stored one.
  const char* stored[] = {"abcd", "badc", "cdab", "dcba", "adcb", "bcda", "cbad", "dabc"};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const bool swaps = orientation >= 5;
    Image image;
    image.Resize(32, 48, 1);
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 48; ++x) {
        const int corner = y < 16 ? (x < 24 ? 0 : 1) : (x < 24 ? 3 : 2);
        image.row(y)[x] = static_cast<uint8_t>(50 * (stored[orientation - 1][corner] - 'a') + 30);
      }
    }
    for (const bool big_endian : {false, true}) {
      const std::vector<uint8_t> bytes = WithExif(EncodeJpeg(image), orientation, big_endian);
      ImageInfo info;
      ASSERT_EQ(ReadImageInfo(bytes, &info), "");
      EXPECT_EQ(info.height, swaps ? 48 : 32);
      EXPECT_EQ(info.width, swaps ? 32 : 48);
      const Image upright = Decoded(bytes);
      ASSERT_EQ(upright.height, info.height);
      const uint8_t *first = upright.row(2), *last = upright.row(upright.height - 3);
      EXPECT_NEAR(first[2], 30, 5) << orientation;
      EXPECT_NEAR(first[upright.width - 3], 80, 5) << orientation;
      EXPECT_NEAR(last[upright.width - 3], 130, 5) << orientation;
      EXPECT_NEAR(last[2], 180, 5) << orientation;
    }
  }
}

// The chunk eXIf stands before the pixels, or behind them.
TEST(Codec, PngIsTurnedUpright) {
  const Image image = Gradient(20, 31, 3);
  const std::vector<uint8_t> png = EncodePng(image), tiff = Exif(6, true);
  std::vector<uint8_t> chunk = {0, 0, 0, static_cast<uint8_t>(tiff.size()), 'e', 'X', 'I', 'f'};
  chunk.insert(chunk.end(), tiff.begin(), tiff.end());
  const auto sum = static_cast<uint32_t>(crc32(0, chunk.data() + 4, static_cast<unsigned>(chunk.size() - 4)));
  for (int shift = 24; shift >= 0; shift -= 8) chunk.push_back(static_cast<uint8_t>(sum >> shift));
  constexpr ptrdiff_t kHeader = 8 + 25, kEnd = 12;  // signature and IHDR; IEND
  for (const ptrdiff_t at : {kHeader, static_cast<ptrdiff_t>(png.size()) - kEnd}) {
    std::vector<uint8_t> turned = png;
    turned.insert(turned.begin() + at, chunk.begin(), chunk.end());
    ImageInfo info;
    ASSERT_EQ(ReadImageInfo(turned, &info), "");
    EXPECT_EQ(info.height, 31);
    EXPECT_EQ(info.orientation, 6);
    const Image upright = Decoded(turned);
    ASSERT_EQ(upright.width, 20);
    for (int y = 0; y < 31; ++y) {
      for (int x = 0; x < 20; ++x) ASSERT_EQ(upright.row(y)[3 * x], image.row(19 - x)[3 * y]) << y << " " << x;
    }
  }
}

TEST(Codec, PointsAreTurnedAsPixels) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image marked;
    marked.Resize(4, 6, 1);
    std::fill(marked.pixels.begin(), marked.pixels.end(), uint8_t{0});
    marked.row(1)[4] = 200;
    TurnUpright(orientation, &marked);
    float x = 4.5f, y = 1.5f;
    TurnPointUpright(orientation, static_cast<float>(marked.height), static_cast<float>(marked.width), &x, &y);
    EXPECT_EQ(marked.row(static_cast<int>(y))[static_cast<int>(x)], 200) << orientation;
  }
}

TEST(Codec, OrientationsThatAreNoneAreUpright) {
  const std::vector<uint8_t> jpeg = EncodeJpeg(Gradient(20, 30, 3));
  for (const int orientation : {0, 9, 65535}) {
    ImageInfo info;
    ASSERT_EQ(ReadImageInfo(WithExif(jpeg, orientation, true), &info), "");
    EXPECT_EQ(info.height, 20);
  }
}

TEST(Codec, SaysWhatIsNoImage) {
  const auto problem = [](const std::string& text) {
    Image image;
    return DecodeImage(std::vector<uint8_t>(text.begin(), text.end()), {}, &image);
  };
  EXPECT_EQ(problem(""), "is empty");
  EXPECT_NE(problem("<!DOCTYPE html>").find("is text (a web page?)"), std::string::npos);
  EXPECT_NE(problem("GIF89a").find("is a GIF image"), std::string::npos);
  EXPECT_EQ(problem("hello\n"), "is text, not an image; JPEG, PNG, BMP, PGM, PPM, WebP and TIFF are read");
  EXPECT_NE(problem("hello\x01").find("is no image that is known"), std::string::npos);
}

TEST(Codec, DamagedFilesAreRefusedOrWhole) {
  // A JPEG is whole without the marker of its end.
  ExpectRefusedOrWhole(
      {EncodeJpeg(Gradient(40, 50, 3)), EncodeJpeg(Gradient(33, 9, 1)), EncodePng(Gradient(30, 20, 3))}, 2);
}

TEST(Codec, ClaimsOfHugeImagesAreRefused) {
  std::vector<uint8_t> jpeg = EncodeJpeg(Gradient(16, 16, 1));
  const uint8_t frame[] = {0xff, 0xc0};
  const auto at = std::search(jpeg.begin(), jpeg.end(), std::begin(frame), std::end(frame));
  ASSERT_NE(at, jpeg.end());
  std::fill(at + 5, at + 9, uint8_t{0xfd});  // 65021 x 65021
  Image image;
  EXPECT_NE(DecodeImage(jpeg, {}, &image).find("claims 65021x65021 pixels"), std::string::npos);
}

TEST(Codec, FilesThatCannotBeReadAreTheEnvironments) {
  EXPECT_THROW(ReadFileBytes("/nowhere/image.jpg"), EnvironmentError);
  EXPECT_THROW(ReadFileBytes("/"), EnvironmentError);
}

TEST(Planes, AreTheFormOfDatums) {
  const Image image = Gradient(3, 5, 3);
  std::vector<uint8_t> planes(image.size());
  ToPlanes(image, planes.data());
  EXPECT_EQ(planes[2 * 15 + 1 * 5 + 4], image.row(1)[4 * 3 + 2]);
  Image back;
  FromPlanes(planes.data(), 3, 3, 5, &back);
  EXPECT_EQ(LargestDifference(back, image), 0);
}

}  // namespace
}  // namespace crema
