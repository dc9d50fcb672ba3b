// Images whose pixels are numbers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "image/codec.h"
#include "image/resize.h"

namespace crema {
namespace {

constexpr DecodeOptions kNumbers{DecodeOptions::Colors::kNumbers};

std::vector<uint8_t> FromHex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// Written by Python: 3x2 pixels 0 1 2, 3 0 1 of a palette, eight bits each.
const char* const kPalette =
    "89504e470d0a1a0a0000000d4948445200000003000000020803000000aaaa96280000000c504c54450000008000000080000909094595"
    "bf29000000104944415478da63606064626066600400002200088d857e2f0000000049454e44ae426082";
// One row of a palette, two bits each: 1 2 3.
const char* const kSmallPalette =
    "89504e470d0a1a0a0000000d4948445200000003000000010203000000668efc270000000c504c54450000008000000080000909094595"
    "bf290000000a4944415478da63c80100006e006d5ff68f670000000049454e44ae426082";
// Grey, four bits each: 0 1 15, 2 7 5.
const char* const kGrey =
    "89504e470d0a1a0a0000000d49484452000000030000000204000000007defd4c70000000e4944415478da6360fcc0a01e000004690169"
    "00b312370000000049454e44ae426082";
// Grey, one pixel of 16 bits.
const char* const kWideGrey =
    "89504e470d0a1a0a0000000d49484452000000010000000110000000006aee47160000000b4944415478da636064020000070004e5ed94"
    "cf0000000049454e44ae426082";

std::vector<int> NumbersOf(const std::string& hex, int height, int width) {
  Image image;
  EXPECT_EQ(DecodeImage(FromHex(hex), kNumbers, &image), "");
  EXPECT_EQ(image.height, height);
  EXPECT_EQ(image.width, width);
  EXPECT_EQ(image.channels, 1);
  return {image.pixels.begin(), image.pixels.begin() + static_cast<std::ptrdiff_t>(image.size())};
}

TEST(LabelImage, NumbersAreThoseStored) {
  EXPECT_EQ(NumbersOf(kPalette, 2, 3), (std::vector<int>{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(NumbersOf(kSmallPalette, 1, 3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(NumbersOf(kGrey, 2, 3), (std::vector<int>{0, 1, 15, 2, 7, 5}));
}

TEST(LabelImage, OthersAreRefused) {
  Image image, colored;
  colored.Resize(2, 2, 3);
  EXPECT_NE(DecodeImage(EncodePng(colored), kNumbers, &image).find("colours without a palette"), std::string::npos);
  EXPECT_NE(DecodeImage(EncodeJpeg(colored), kNumbers, &image).find("is a JPEG"), std::string::npos);
  EXPECT_NE(DecodeImage(FromHex(kWideGrey), kNumbers, &image).find("16 bits"), std::string::npos);
  std::vector<uint8_t> cut = FromHex(kPalette);
  cut.resize(cut.size() - 20);
  EXPECT_NE(DecodeImage(cut, kNumbers, &image).find("cut short"), std::string::npos);
}

TEST(LabelImage, IsResizedToItsNearestPixels) {
  Image from, to;
  ResizeBuffers buffers;
  from.Resize(2, 4, 1);
  from.pixels = {1, 2, 3, 4, 5, 6, 7, 8};
  ResizeNearest(from, {0, 0, 2, 4}, 4, 8, &buffers, &to);
  EXPECT_EQ(std::vector<int>(to.row(1), to.row(1) + 8), (std::vector<int>{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(std::vector<int>(to.row(2), to.row(2) + 8), (std::vector<int>{5, 5, 6, 6, 7, 7, 8, 8}));
  // Of two pixels the second is taken: a centre between them belongs to it.
  ResizeNearest(from, {0, 0, 2, 4}, 1, 2, &buffers, &to);
  EXPECT_EQ(std::vector<int>(to.row(0), to.row(0) + 2), (std::vector<int>{6, 8}));
  // The middle one of three.
  ResizeNearest(from, {1, 1, 1, 3}, 1, 1, &buffers, &to);
  EXPECT_EQ(to.row(0)[0], 7);
}

}  // namespace
}  // namespace crema
