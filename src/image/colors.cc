// What formats have in common.
#include <cstring>

#include "image/formats.h"

namespace crema {

std::string Damaged(const std::string& why) {
  return "is damaged or cut short (" + why + "); restore it or leave it out";
}

std::string SizeProblem(int64_t height, int64_t width) {
  if (height > 0 && width > 0 && height <= kMostPixels && width <= kMostPixels && height * width <= kMostPixels) {
    return {};
  }
  if (height <= 0 || width <= 0) return "is damaged (it claims to have no pixels); restore it or leave it out";
  return "claims " + std::to_string(width) + "x" + std::to_string(height) +
         " pixels, more than are read; make it smaller or leave it out";
}

int ChannelsFor(DecodeOptions::Colors colors, int stored) {
  if (colors == DecodeOptions::Colors::kColor) return 3;
  return colors == DecodeOptions::Colors::kAsStored ? stored : 1;
}

void WriteRowAs(const uint8_t* from, int from_channels, int64_t width, int channels, uint8_t* to) {
  if (channels == from_channels) {
    if (to != from) std::memcpy(to, from, static_cast<size_t>(width * channels));
    return;
  }
  if (from_channels == 1) {
    for (int64_t x = 0; x < width; ++x) to[3 * x] = to[3 * x + 1] = to[3 * x + 2] = from[x];
    return;
  }
  for (int64_t x = 0; x < width; ++x, from += 3) {
    // ITU-R BT.601, in 14 bits.
    to[x] = static_cast<uint8_t>((from[0] * 1868 + from[1] * 9617 + from[2] * 4899 + 8192) >> 14);
  }
}

void MakeGrey(Image* image) {
  WriteRowAs(image->pixels.data(), 3, int64_t{image->height} * image->width, 1, image->pixels.data());
  image->channels = 1;
}

}  // namespace crema
