// WebP and TIFF, from files that their own libraries write here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "base/plugin.h"
#include "base/random.h"
#include "crema/error.h"
#include "image/codec.h"
#include "image/damaged_files.h"
#include "temporary_folder.h"

#ifdef CREMA_HAS_CODECS
#include <tiffio.h>
#include <webp/encode.h>
#endif

namespace crema {
namespace {

using Colors = DecodeOptions::Colors;
using Bytes = std::vector<uint8_t>;

#ifdef CREMA_HAS_CODECS

Image Noise(int height, int width, int channels) {
  Image image;
  image.Resize(height, width, channels);
  const RandomStream random(3, 4);
  for (size_t i = 0; i < image.size(); ++i) image.pixels[i] = static_cast<uint8_t>(random.Below(i, 256));
  return image;
}

void ExpectSame(const Image& a, const Image& b) {
  ASSERT_EQ(a.height, b.height);
  ASSERT_EQ(a.width, b.width);
  ASSERT_EQ(a.channels, b.channels);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a.pixels[i], b.pixels[i]) << i;
}

Image Decoded(const Bytes& bytes, Colors colors = Colors::kAsStored) {
  Image image;
  EXPECT_EQ(DecodeImage(bytes, {.colors = colors}, &image), "");
  ImageInfo info;
  EXPECT_EQ(ReadImageInfo(bytes, &info), "");
  EXPECT_EQ(image.height, info.height);
  EXPECT_EQ(image.width, info.width);
  EXPECT_EQ(image.channels, colors == Colors::kAsStored ? info.channels : colors == Colors::kColor ? 3 : 1);
  return image;
}

// Luminance as the other formats have it.
Image Grey(const Image& image) {
  Image grey;
  EXPECT_EQ(DecodeImage(EncodePng(image), {.colors = Colors::kGray}, &grey), "");
  return grey;
}

int LargestDifference(const Image& a, const Image& b) {
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

Bytes Webp(const Image& image) {
  uint8_t* bytes = nullptr;
  const size_t size = WebPEncodeLosslessBGR(image.pixels.data(), image.width, image.height,
                                            static_cast<int>(image.row_bytes()), &bytes);
  const Bytes all(bytes, bytes + size);
  WebPFree(bytes);
  return all;
}

struct TiffOptions {
  int compression = COMPRESSION_NONE, orientation = ORIENTATION_TOPLEFT, bits = 8, format = SAMPLEFORMAT_UINT;
};

Bytes Tiff(const Image& image, const TiffOptions& options = {}) {
  static TemporaryFolder folder;
  const std::string path = folder / "image.tif";
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, image.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, image.height);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, image.channels);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, options.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, options.format);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, image.channels == 1 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, options.compression);
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, options.orientation);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 4);
  const size_t wide = static_cast<size_t>(options.bits / 8);
  for (int y = 0; y < image.height; ++y) {
    Bytes row(image.row_bytes() * wide);
    for (size_t i = 0; i < image.row_bytes(); ++i) {
      const size_t from = image.channels == 1 ? i : i - i % 3 + (2 - i % 3);  // red first
      for (size_t k = 0; k < wide; ++k) row[i * wide + k] = image.row(y)[from];
    }
    TIFFWriteScanline(tiff, row.data(), static_cast<uint32_t>(y), 0);
  }
  TIFFClose(tiff);
  return ReadFileBytes(path);
}

TEST(Webp, EveryPixelIsRead) {
  const Image image = Noise(13, 17, 3);
  ExpectSame(Decoded(Webp(image)), image);
  EXPECT_LE(LargestDifference(Decoded(Webp(image), Colors::kGray), Grey(image)), 1);
}

// With the flags of VP8X, and Exif behind the pixels, as libwebp's own program writes it.
TEST(Webp, ImagesAreTurnedUpright) {
  const Image image = Noise(13, 16, 3);
  const Bytes plain = Webp(image);
  const Bytes tiff = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0};
  for (const std::string header : {"", "Exif"}) {
    Bytes exif(header.begin(), header.end());
    if (!header.empty()) exif.insert(exif.end(), 2, 0);
    exif.insert(exif.end(), tiff.begin(), tiff.end());
    Bytes file = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'E', 'B', 'P', 'V', 'P', '8', 'X', 10, 0, 0, 0, 8, 0, 0, 0};
    for (const int extent : {image.width - 1, image.height - 1}) {
      file.insert(file.end(), {static_cast<uint8_t>(extent), 0, 0});
    }
    file.insert(file.end(), plain.begin() + 12, plain.end());
    file.insert(file.end(), {'E', 'X', 'I', 'F', static_cast<uint8_t>(exif.size()), 0, 0, 0});
    file.insert(file.end(), exif.begin(), exif.end());
    for (int i = 0; i < 4; ++i) file[4 + i] = static_cast<uint8_t>((file.size() - 8) >> 8 * i);
    const Image upright = Decoded(file);
    ASSERT_EQ(upright.height, 16);
    ASSERT_EQ(upright.width, 13);
    for (int y = 0; y < 16; ++y) {
      for (int x = 0; x < 13; ++x) ASSERT_EQ(upright.row(y)[3 * x], image.row(12 - x)[3 * y]) << y << " " << x;
    }
  }
}

TEST(Tiff, EveryPixelIsRead) {
  for (const int channels : {1, 3}) {
    const Image image = Noise(13, 17, channels);
    for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
      SCOPED_TRACE(compression);
      ExpectSame(Decoded(Tiff(image, {.compression = compression})), image);
    }
    // Both bytes of a value are the same, so that 8 bits of 16 are these.
    ExpectSame(Decoded(Tiff(image, {.bits = 16})), image);
  }
  const Image image = Noise(5, 4, 3);
  EXPECT_LE(LargestDifference(Decoded(Tiff(image), Colors::kGray), Grey(image)), 1);
  const Image grey = Noise(5, 4, 1);
  EXPECT_EQ(Decoded(Tiff(grey), Colors::kColor).channels, 3);
}

TEST(Tiff, ImagesAreTurnedUpright) {
  const Image image = Noise(2, 3, 1);
  const auto at = [&](int y, int x) { return image.row(y)[x]; };
  const Image half = Decoded(Tiff(image, {.orientation = ORIENTATION_BOTRIGHT}));
  EXPECT_EQ(half.row(0)[0], at(1, 2));
  const Image quarter = Decoded(Tiff(image, {.orientation = ORIENTATION_RIGHTTOP}));  // turned by a quarter, clockwise
  ASSERT_EQ(quarter.height, 3);
  ASSERT_EQ(quarter.width, 2);
  EXPECT_EQ(quarter.row(0)[0], at(1, 0));
  EXPECT_EQ(quarter.row(2)[1], at(0, 2));
}

TEST(Tiff, TransparencyIsLeftOut) {
  const TemporaryFolder folder;
  const std::string path = folder / "image.tif";
  const Bytes pixels = {200, 100, 50, 0, 200, 100, 50, 128};
  for (const uint16_t kind : {EXTRASAMPLE_UNASSALPHA, EXTRASAMPLE_ASSOCALPHA}) {
    TIFF* tiff = TIFFOpen(path.c_str(), "w");
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 2);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 1);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 4);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind);
    TIFFWriteScanline(tiff, const_cast<uint8_t*>(pixels.data()), 0, 0);
    TIFFClose(tiff);
    const Image image = Decoded(ReadFileBytes(path));
    ASSERT_EQ(image.channels, 3);
    EXPECT_EQ(Bytes(image.pixels.begin(), image.pixels.begin() + 6), (Bytes{50, 100, 200, 50, 100, 200})) << kind;
  }
}

TEST(Tiff, WhatHasNoEightBitsIsNamed) {
  Image image;
  const std::string problem =
      DecodeImage(Tiff(Noise(4, 4, 1), {.bits = 32, .format = SAMPLEFORMAT_IEEEFP}), {}, &image);
  EXPECT_NE(problem.find("is a TIFF image of a rare kind"), std::string::npos) << problem;
  EXPECT_NE(problem.find("convert it to PNG"), std::string::npos) << problem;
}

// Whether the directory names fewer strips than its height asks for, or says of one that it is nowhere.
TEST(Tiff, MissingStripsAreRefused) {
  Bytes bytes = Tiff(Noise(4, 4, 1));  // one strip
  const Bytes length = {257 % 256, 257 / 256, 3, 0, 1, 0, 0, 0, 4, 0};
  const auto at = std::search(bytes.begin(), bytes.end(), length.begin(), length.end());
  ASSERT_NE(at, bytes.end());
  at[8] = 12;
  Image image;
  const std::string problem = DecodeImage(bytes, {}, &image);
  EXPECT_NE(problem.find("is damaged or cut short (TIFF: strip 1 of 3 is missing)"), std::string::npos) << problem;
}

TEST(Codecs, DamagedFilesAreRefusedOrWhole) {
  ExpectRefusedOrWhole({Webp(Noise(20, 30, 3)), Tiff(Noise(20, 30, 3), {.compression = COMPRESSION_LZW}),
                        Tiff(Noise(9, 9, 1), {.compression = COMPRESSION_ADOBE_DEFLATE})});
}

TEST(Codecs, DamageIsDescribed) {
  Image image;
  EXPECT_NE(DecodeImage(Bytes{'I', 'I', 42, 0, 200, 0, 0, 0}, {}, &image).find("is damaged or cut short (TIFF: "),
            std::string::npos);
  Bytes webp = Webp(Noise(8, 8, 3));
  webp.resize(webp.size() / 2);
  EXPECT_NE(DecodeImage(webp, {}, &image).find("is damaged or cut short (WebP: "), std::string::npos);
}

#endif

// Run where the library is not, too.
TEST(Codecs, WithoutTheirLibrarySayWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has not loaded it yet
  EXPECT_EXIT(
      {
        setenv("CREMA_CODEC_LIBRARY", "/nowhere/libcrema_codecs.so", 1);
        Image image;
        try {
          const std::string webp = "RIFF....WEBPVP8 ";
          (void)DecodeImage(Bytes(webp.begin(), webp.end()), {}, &image);
          std::exit(1);
        } catch (const EnvironmentError& error) {
          const std::string text = error.what();
          std::exit(text.find("read WebP images") != std::string::npos &&
                            text.find("libwebp-dev libtiff-dev") != std::string::npos
                        ? 0
                        : 2);
        }
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace crema
