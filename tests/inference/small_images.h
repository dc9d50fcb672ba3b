// Images whose values say where they stand, and what makes them ready.
#ifndef CREMA_TESTS_INFERENCE_SMALL_IMAGES_H_
#define CREMA_TESTS_INFERENCE_SMALL_IMAGES_H_

#include <string>

#include "crema/files.h"
#include "image/image.h"

namespace crema {

// Values of row y and column x: 10 y + x.
inline Image Ramp(int height, int width) {
  Image image;
  image.Resize(height, width, 1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) image.row(y)[x] = static_cast<uint8_t>(10 * y + x);
  }
  return image;
}

inline TransformationParameter Param(const std::string& text) {
  NetFile file = ParseNet("layer { name: \"d\" type: \"Input\" top: \"d\" transform_param { " + text + " } }", "net");
  return file.net.layer(0).transform_param();
}

}  // namespace crema

#endif  // CREMA_TESTS_INFERENCE_SMALL_IMAGES_H_
