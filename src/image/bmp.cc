// BMP, the format of Windows (https://learn.microsoft.com/windows/win32/gdi/bitmap-storage): what cameras of machines
// write, which is not compressed. Numbers are little-endian, rows are multiples of four bytes.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "image/formats.h"

namespace crema {

namespace {

constexpr size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
constexpr uint32_t kUncompressed = 0, kMasks = 3;

struct Bmp {
  std::span<const uint8_t> bytes;
  int height = 0, width = 0, bits = 0;
  bool top_down = false;
  bool grey = false;  // all colours of the palette are
  size_t pixels = 0;  // where they begin
  size_t row_bytes = 0;
  int colors = 0;  // in the palette
  std::array<std::array<uint8_t, 3>, 256> palette = {};

  uint32_t U16(size_t at) const { return bytes[at] | uint32_t{bytes[at + 1]} << 8; }
  uint32_t U32(size_t at) const { return U16(at) | U16(at + 2) << 16; }
};

std::string ReadPalette(size_t at, size_t entry_bytes, uint32_t used, Bmp* bmp) {
  const uint32_t most = 1u << bmp->bits;
  if (used > most) return Damaged("its palette has " + std::to_string(used) + " colours");
  bmp->colors = static_cast<int>(used > 0 ? used : most);
  if (at + entry_bytes * static_cast<size_t>(bmp->colors) > bmp->bytes.size()) return Damaged("its palette ends early");
  bmp->grey = true;
  for (int i = 0; i < bmp->colors; ++i, at += entry_bytes) {
    std::array<uint8_t, 3>& color = bmp->palette[static_cast<size_t>(i)];
    std::copy_n(bmp->bytes.data() + at, 3, color.begin());
    bmp->grey = bmp->grey && color[0] == color[1] && color[1] == color[2];
  }
  return {};
}

std::string ReadHeader(std::span<const uint8_t> bytes, Bmp* bmp) {
  bmp->bytes = bytes;
  if (bytes.size() < kFileHeader + kCoreHeader) return Damaged("no whole header");
  const size_t header = bmp->U32(kFileHeader);
  const bool core = header == kCoreHeader;
  if (!core && (header < kInfoHeader || header > 1024 || bytes.size() < kFileHeader + header)) {
    return Damaged("no whole header");
  }
  bmp->pixels = bmp->U32(10);
  const int64_t width = core ? int64_t{bmp->U16(18)} : static_cast<int32_t>(bmp->U32(18));
  const int64_t height = core ? int64_t{bmp->U16(20)} : static_cast<int32_t>(bmp->U32(22));  // below 0: top down
  bmp->bits = static_cast<int>(bmp->U16(core ? 24 : 28));
  const uint32_t compression = core ? kUncompressed : bmp->U32(30);
  if (std::string problem = SizeProblem(std::abs(height), width); !problem.empty()) return problem;
  bmp->width = static_cast<int>(width);
  bmp->height = static_cast<int>(std::abs(height));
  bmp->top_down = height < 0;
  const bool indexed = bmp->bits == 1 || bmp->bits == 4 || bmp->bits == 8;
  const size_t masks = kFileHeader + kInfoHeader;
  const bool usual_masks = compression == kMasks && bmp->bits == 32 && bytes.size() >= masks + 12 &&
                           bmp->U32(masks) == 0xff0000 && bmp->U32(masks + 4) == 0xff00 && bmp->U32(masks + 8) == 0xff;
  if ((!indexed && bmp->bits != 24 && bmp->bits != 32) || (compression != kUncompressed && !usual_masks)) {
    return "is a BMP image of a rare kind (" + std::to_string(bmp->bits) + " bits a pixel, compression " +
           std::to_string(compression) + "); convert it to PNG";
  }
  bmp->row_bytes = (static_cast<size_t>(bmp->width) * static_cast<size_t>(bmp->bits) + 31) / 32 * 4;
  if (bmp->pixels < kFileHeader + header ||
      bmp->pixels + bmp->row_bytes * static_cast<size_t>(bmp->height) > bytes.size()) {
    return Damaged("its rows of pixels end early");
  }
  return indexed ? ReadPalette(kFileHeader + header, core ? 3 : 4, core ? 0 : bmp->U32(46), bmp) : "";
}

}  // namespace

std::string ReadBmpInfo(std::span<const uint8_t> bytes, ImageInfo* info) {
  Bmp bmp;
  std::string problem = ReadHeader(bytes, &bmp);
  if (problem.empty()) *info = {ImageFormat::kBmp, bmp.height, bmp.width, bmp.grey ? 1 : 3};
  return problem;
}

std::string DecodeBmp(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image) {
  Bmp bmp;
  if (std::string problem = ReadHeader(bytes, &bmp); !problem.empty()) return problem;
  const int stored = bmp.grey ? 1 : 3;
  image->Resize(bmp.height, bmp.width, ChannelsFor(options.colors, stored));
  std::vector<uint8_t> row(static_cast<size_t>(bmp.width) * 3);
  for (int y = 0; y < bmp.height; ++y) {
    const uint8_t* from =
        bytes.data() + bmp.pixels + bmp.row_bytes * static_cast<size_t>(bmp.top_down ? y : bmp.height - 1 - y);
    if (bmp.bits == 24) {
      WriteRowAs(from, 3, bmp.width, image->channels, image->row(y));
      continue;
    }
    for (int x = 0; x < bmp.width; ++x) {
      const uint8_t* color = from + size_t{4} * x;
      if (bmp.bits < 24) {
        const int bit = x * bmp.bits, number = from[bit / 8] >> (8 - bmp.bits - bit % 8) & ((1 << bmp.bits) - 1);
        if (number >= bmp.colors) return Damaged("a pixel has no colour in its palette");
        color = bmp.palette[static_cast<size_t>(number)].data();
      }
      std::copy_n(color, stored, row.data() + size_t{1} * x * stored);
    }
    WriteRowAs(row.data(), stored, bmp.width, image->channels, image->row(y));
  }
  return {};
}

}  // namespace crema
