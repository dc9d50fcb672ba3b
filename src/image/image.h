// Images in memory.
#ifndef CREMA_IMAGE_IMAGE_H_
#define CREMA_IMAGE_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crema {

// Rows of pixels, one byte for each channel, the channels of a pixel side by side: grey, or blue, green, red (the order
// that Caffe's databases and nets have). Buffers are kept when an image is decoded or resized into anew.
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // at least size() bytes

  size_t row_bytes() const { return static_cast<size_t>(width) * channels; }
  size_t size() const { return row_bytes() * height; }
  const uint8_t* row(int y) const { return pixels.data() + y * row_bytes(); }
  uint8_t* row(int y) { return pixels.data() + y * row_bytes(); }

  void Resize(int new_height, int new_width, int new_channels) {
    height = new_height;
    width = new_width;
    channels = new_channels;
    if (pixels.size() < size()) pixels.resize(size());
  }
};

// A part of an image.
struct ImageArea {
  int top = 0, left = 0, height = 0, width = 0;

  friend bool operator==(const ImageArea&, const ImageArea&) = default;
};

// To and from the form of Caffe's Datum: channel by channel, row by row. `planes` holds image.size() bytes.
void ToPlanes(const Image& image, uint8_t* planes);
void FromPlanes(const uint8_t* planes, int channels, int height, int width, Image* image);

}  // namespace crema

#endif  // CREMA_IMAGE_IMAGE_H_
