// BMP, PGM and PPM: the kinds that are read, from files written byte by byte.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "image/codec.h"

namespace crema {
namespace {

using Colors = DecodeOptions::Colors;
using Bytes = std::vector<uint8_t>;

Bytes Little(uint32_t value, int bytes = 4) {
  Bytes all;
  for (int i = 0; i < bytes; ++i) all.push_back(static_cast<uint8_t>(value >> 8 * i));
  return all;
}

Bytes Joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// What lies between the header of 40 bytes and the pixels: a palette, or masks.
Bytes Bmp(int32_t width, int32_t height, int bits, const Bytes& between, const Bytes& rows, uint32_t compression = 0,
          uint32_t colors = 0) {
  const auto size = static_cast<uint32_t>(54 + between.size() + rows.size());
  return Joined({{'B', 'M'},
                 Little(size),
                 Little(0),
                 Little(static_cast<uint32_t>(54 + between.size())),
                 Little(40),
                 Little(static_cast<uint32_t>(width)),
                 Little(static_cast<uint32_t>(height)),
                 Little(1, 2),
                 Little(static_cast<uint32_t>(bits), 2),
                 Little(compression),
                 Little(0),
                 Little(0),
                 Little(0),
                 Little(colors),
                 Little(0),
                 between,
                 rows});
}

Bytes Text(const std::string& text) { return {text.begin(), text.end()}; }

Bytes PixelsOf(const Bytes& file, Colors colors = Colors::kAsStored) {
  ImageInfo info;
  EXPECT_EQ(ReadImageInfo(file, &info), "");
  Image image;
  EXPECT_EQ(DecodeImage(file, {.colors = colors}, &image), "");
  EXPECT_EQ(image.height, info.height);
  EXPECT_EQ(image.width, info.width);
  EXPECT_EQ(image.channels, colors == Colors::kAsStored ? info.channels : colors == Colors::kColor ? 3 : 1);
  return {image.pixels.begin(), image.pixels.begin() + static_cast<std::ptrdiff_t>(image.size())};
}

std::string ProblemOf(const Bytes& file) {
  Image image;
  return DecodeImage(file, {}, &image);
}

// Two rows of a pixel and a half of padding each, the lower one first.
const Bytes kThreeBytes = Bmp(1, 2, 24, {}, {1, 2, 3, 0, 4, 5, 6, 0});

TEST(Bmp, RowsAreStoredFromBelow) {
  EXPECT_EQ(PixelsOf(kThreeBytes), (Bytes{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(PixelsOf(Bmp(1, -2, 24, {}, {1, 2, 3, 0, 4, 5, 6, 0})), (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST(Bmp, GreyIsLuminance) {
  // 0.114, 0.587 and 0.299 of blue, green and red.
  const Bytes file = Bmp(3, 1, 24, {}, {100, 0, 0, 0, 100, 0, 0, 0, 100, 0, 0, 0});
  EXPECT_EQ(PixelsOf(file, Colors::kGray), (Bytes{11, 59, 30}));
}

TEST(Bmp, FourBytesAPixelHaveNoTransparency) {
  const Bytes rows = {1, 2, 3, 99, 4, 5, 6, 0};
  EXPECT_EQ(PixelsOf(Bmp(2, 1, 32, {}, rows)), (Bytes{1, 2, 3, 4, 5, 6}));
  const Bytes masks = Joined({Little(0xff0000), Little(0xff00), Little(0xff)});
  EXPECT_EQ(PixelsOf(Bmp(2, 1, 32, masks, rows, 3)), (Bytes{1, 2, 3, 4, 5, 6}));
  const Bytes others = Joined({Little(0xff), Little(0xff00), Little(0xff0000)});
  EXPECT_NE(ProblemOf(Bmp(2, 1, 32, others, rows, 3)).find("of a rare kind"), std::string::npos);
}

TEST(Bmp, PalettesAreLookedUp) {
  const Bytes palette = {10, 20, 30, 0, 40, 50, 60, 0, 70, 80, 90, 0};
  EXPECT_EQ(PixelsOf(Bmp(2, 1, 8, palette, {2, 0, 0, 0}, 0, 3)), (Bytes{70, 80, 90, 10, 20, 30}));
  EXPECT_EQ(PixelsOf(Bmp(3, 1, 4, palette, {0x12, 0x00, 0, 0}, 0, 3)), (Bytes{40, 50, 60, 70, 80, 90, 10, 20, 30}));
  EXPECT_NE(ProblemOf(Bmp(2, 1, 8, palette, {3, 0, 0, 0}, 0, 3)).find("no colour in its palette"), std::string::npos);
  EXPECT_NE(ProblemOf(Bmp(2, 1, 8, palette, {1, 0, 0, 0}, 0, 200)).find("palette ends early"), std::string::npos);
  EXPECT_NE(ProblemOf(Bmp(2, 1, 8, palette, {1, 0, 0, 0}, 0, 1u << 30)).find("its palette has"), std::string::npos);
}

TEST(Bmp, AGreyPaletteIsAGreyImage) {
  const Bytes two = {0, 0, 0, 0, 255, 255, 255, 0};
  const Bytes file = Bmp(10, 1, 1, two, {0b10100000, 0b01000000, 0, 0});
  EXPECT_EQ(PixelsOf(file), (Bytes{255, 0, 255, 0, 0, 0, 0, 0, 0, 255}));
  EXPECT_EQ(PixelsOf(file, Colors::kColor).size(), 30u);
}

TEST(Bmp, TheOldHeaderIsRead) {
  const Bytes header = Joined({{'B', 'M'},
                               Little(30),
                               Little(0),
                               Little(26),
                               Little(12),
                               Little(1, 2),
                               Little(1, 2),
                               Little(1, 2),
                               Little(24, 2),
                               {7, 8, 9, 0}});
  EXPECT_EQ(PixelsOf(header), (Bytes{7, 8, 9}));
}

TEST(Bmp, WhatIsNotReadIsNamed) {
  EXPECT_NE(
      ProblemOf(Bmp(4, 1, 8, Bytes(1024), {4, 1, 0, 1}, 1)).find("8 bits a pixel, compression 1); convert it to PNG"),
      std::string::npos);
  EXPECT_NE(ProblemOf(Bmp(2, 1, 16, {}, Bytes(4))).find("16 bits a pixel"), std::string::npos);
  EXPECT_NE(ProblemOf(Bmp(0, 1, 24, {}, Bytes(4))).find("no pixels"), std::string::npos);
  EXPECT_NE(ProblemOf(Bmp(1 << 20, INT32_MIN, 24, {}, Bytes(4))).find("more than are read"), std::string::npos);
  EXPECT_NE(ProblemOf(Text("BMW is a car, not an image")).find("is text, not an image"), std::string::npos);
}

TEST(Pnm, GreyAndColoursAreRead) {
  EXPECT_EQ(PixelsOf(Joined({Text("P5\n2 1\n255\n"), {7, 9}})), (Bytes{7, 9}));
  EXPECT_EQ(PixelsOf(Joined({Text("P6 # of a camera\n1\t2 255 "), {1, 2, 3, 4, 5, 6}})), (Bytes{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(PixelsOf(Joined({Text("P6\n2 1\n255\n"), {100, 0, 0, 0, 0, 100}}), Colors::kGray), (Bytes{30, 11}));
}

TEST(Pnm, LinesMayEndAsInWindows) {
  EXPECT_EQ(PixelsOf(Joined({Text("P5\r\n2 1\r\n255\r\n"), {7, 9}})), (Bytes{7, 9}));
  EXPECT_EQ(PixelsOf(Joined({Text("P5 2 1 255\r"), {'\n', 9}})), (Bytes{'\n', 9}));
}

TEST(Pnm, OtherRangesBecomeThatOfBytes) {
  EXPECT_EQ(PixelsOf(Joined({Text("P5 3 1 15\n"), {0, 7, 15}})), (Bytes{0, 119, 255}));
  EXPECT_EQ(PixelsOf(Joined({Text("P5 3 1 65535\n"), {0, 0, 0x80, 0x80, 0xff, 0xff}})), (Bytes{0, 128, 255}));
  EXPECT_NE(ProblemOf(Joined({Text("P5 2 1 15\n"), {1, 16}})).find("above the largest"), std::string::npos);
}

TEST(Pnm, OtherKindsAreNamed) {
  EXPECT_NE(ProblemOf(Text("P2\n1 1\n255\n7\n")).find("is a PNM image of another kind than binary PGM and PPM"),
            std::string::npos);
}

TEST(Pnm, DamageIsNamed) {
  for (const char* header : {"P5\n", "P5 3\n", "P5 3 1\n", "P5 0 1 255\n", "P5 3 1 70000\n", "P5 3 1 255"}) {
    EXPECT_NE(ProblemOf(Text(header)).find("no whole header"), std::string::npos) << header;
  }
  EXPECT_NE(ProblemOf(Text("P5 99999999 9999999 255 \n")).find("more than are read"), std::string::npos);
  EXPECT_NE(ProblemOf(Joined({Text("P5 3 1 255\n"), {1, 2}})).find("end early"), std::string::npos);
}

TEST(SimpleFormats, FilesThatAreCutShortAreRefused) {
  for (const Bytes& whole :
       {kThreeBytes, Bmp(2, 3, 8, Bytes(1024), Bytes(12)), Joined({Text("P6 1 2 255\n"), Bytes(6)})}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_NE(ProblemOf({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}), "") << length;
    }
    EXPECT_EQ(ProblemOf(whole), "");
  }
}

TEST(SimpleFormats, AreNoLabelImages) {
  Image image;
  EXPECT_EQ(DecodeImage(kThreeBytes, {.colors = Colors::kNumbers}, &image),
            "is a BMP, not a PNG, for the labels of pixels; write label images as PNG");
}

TEST(SimpleFormats, NamesOfImagesEndSo) {
  for (const char* name : {"a.jpg", "b/a.JPEG", "a.Bmp", "a.pgm", "a.ppm", "a.webp", "a.tif", "a.TIFF", "a.png"}) {
    EXPECT_TRUE(HasImageName(name)) << name;
  }
  for (const char* name : {"a.txt", "jpg", "a.jpg.gz", "a.gif", ""}) EXPECT_FALSE(HasImageName(name)) << name;
}

}  // namespace
}  // namespace crema
