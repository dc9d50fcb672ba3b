// Exif's orientation (CIPA DC-008, section 4.6.4: tag 0x0112 of the 0th IFD of a TIFF structure).
#include <cstring>
#include <utility>

#include "image/formats.h"

namespace crema {

namespace {

// Numbers of a TIFF structure in its byte order; 0 behind the end.
class TiffReader {
 public:
  TiffReader(std::span<const uint8_t> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  uint32_t U16(size_t at) const { return Number(at, 2); }
  uint32_t U32(size_t at) const { return Number(at, 4); }

 private:
  uint32_t Number(size_t at, int size) const {
    if (at > bytes_.size() || bytes_.size() - at < static_cast<size_t>(size)) return 0;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) value = value << 8 | bytes_[at + (big_endian_ ? i : size - 1 - i)];
    return value;
  }

  std::span<const uint8_t> bytes_;
  bool big_endian_;
};

// The pixel (y, x) of the upright image is (y, x) of the stored one after: a transposition, then these mirrorings.
bool BottomUp(int orientation) { return orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8; }
bool RightLeft(int orientation) { return orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7; }

}  // namespace

int ExifOrientation(std::span<const uint8_t> exif) {
  constexpr size_t kHeader = 6;  // "Exif\0\0", which JPEG has, PNG has not, and some programs write in WebP
  const bool has_header = exif.size() >= kHeader && std::memcmp(exif.data(), "Exif\0\0", kHeader) == 0;
  const std::span<const uint8_t> tiff = exif.subspan(has_header ? kHeader : 0);
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const TiffReader reader(tiff, tiff[0] == 'M');
  if (reader.U16(2) != 42) return 1;
  const size_t directory = reader.U32(4);
  const uint32_t entries = reader.U16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (reader.U16(entry) != 0x0112) continue;
    const uint32_t value = reader.U16(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

bool SwapsSides(int orientation) { return orientation >= 5; }

void TurnPointUpright(int orientation, float height, float width, float* x, float* y) {
  if (SwapsSides(orientation)) std::swap(*x, *y);
  if (BottomUp(orientation)) *y = height - *y;
  if (RightLeft(orientation)) *x = width - *x;
}

void TurnUpright(int orientation, Image* image) {
  if (orientation <= 1) return;
  const bool swaps = SwapsSides(orientation), bottom_up = BottomUp(orientation), right_left = RightLeft(orientation);
  const int height = swaps ? image->width : image->height, width = swaps ? image->height : image->width;
  Image turned;
  turned.Resize(height, width, image->channels);
  for (int y = 0; y < height; ++y) {
    uint8_t* to = turned.row(y);
    for (int x = 0; x < width; ++x, to += image->channels) {
      const int up = bottom_up ? height - 1 - y : y, across = right_left ? width - 1 - x : x;
      const uint8_t* from = image->row(swaps ? across : up) + (swaps ? up : across) * image->channels;
      std::memcpy(to, from, image->channels);
    }
  }
  *image = std::move(turned);
}

}  // namespace crema
