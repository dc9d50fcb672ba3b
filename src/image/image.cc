#include "image/image.h"

namespace crema {

void ToPlanes(const Image& image, uint8_t* planes) {
  const size_t pixels = static_cast<size_t>(image.height) * image.width;
  for (int c = 0; c < image.channels; ++c, planes += pixels) {
    const uint8_t* from = image.pixels.data() + c;
    for (size_t i = 0; i < pixels; ++i) planes[i] = from[i * image.channels];
  }
}

void FromPlanes(const uint8_t* planes, int channels, int height, int width, Image* image) {
  image->Resize(height, width, channels);
  const size_t pixels = static_cast<size_t>(height) * width;
  for (int c = 0; c < channels; ++c, planes += pixels) {
    uint8_t* to = image->pixels.data() + c;
    for (size_t i = 0; i < pixels; ++i) to[i * channels] = planes[i];
  }
}

}  // namespace crema
