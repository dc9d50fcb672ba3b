// Images for the tests of src/data.
#ifndef CREMA_TESTS_DATA_IMAGE_TESTING_H_
#define CREMA_TESTS_DATA_IMAGE_TESTING_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "image/codec.h"
#include "image/image.h"

namespace crema::testing {

// Slopes of colour with some noise, another for each seed.
inline Image Photograph(int height, int width, int channels = 3, uint64_t seed = 0) {
  Image image;
  image.Resize(height, width, channels);
  const RandomStream random(seed, 99);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const auto at = static_cast<uint64_t>((y * width + x) * channels + c);
        const int slope = 200 * (c == 0 ? y : x) / (c == 0 ? height : width);
        image.row(y)[x * channels + c] = static_cast<uint8_t>(slope + static_cast<int>(random.Below(at, 50)));
      }
    }
  }
  return image;
}

// A record that holds the image as PNG, or as JPEG.
inline Datum EncodedDatum(const Image& image, int label, bool jpeg = false) {
  Datum datum;
  const std::vector<uint8_t> bytes = jpeg ? EncodeJpeg(image) : EncodePng(image);
  datum.set_data(std::string(bytes.begin(), bytes.end()));
  datum.set_encoded(true);
  datum.set_label(label);
  return datum;
}

inline std::string Png(const Image& image) {
  const std::vector<uint8_t> bytes = EncodePng(image);
  return {bytes.begin(), bytes.end()};
}

// The JPEG with Exif's orientation.
inline std::vector<uint8_t> WithOrientation(std::vector<uint8_t> jpeg, int orientation) {
  const std::vector<uint8_t> segment = {0xff, 0xe1, 0,  34, 'E', 'x', 'i', 'f', 0,
                                        0,  // APP1
                                        'I',  'I',  42, 0,  8,   0,   0,   0,   1,
                                        0,  // TIFF, one entry:
                                        0x12, 1,    3,  0,  1,   0,   0,   0,   static_cast<uint8_t>(orientation),
                                        0,    0,    0,  0,  0,   0,   0};
  jpeg.insert(jpeg.begin() + 2, segment.begin(), segment.end());
  return jpeg;
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_IMAGE_TESTING_H_
