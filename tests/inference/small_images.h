// Images whose values say where they stand, and what makes them ready.
#ifndef CREMA_TESTS_INFERENCE_SMALL_IMAGES_H_
#define CREMA_TESTS_INFERENCE_SMALL_IMAGES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "crema/files.h"
#include "image/image.h"
#include "inference/image_items.h"

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

// Images in memory: the label is the number, each third one is broken.
class Numbers : public ImageItems {
 public:
  uint64_t count() const override { return 10; }
  std::string Name(uint64_t i) const override { return "image " + std::to_string(i); }
  std::optional<ImageSize> Size(uint64_t) const override { return ImageSize{1, 1, 2}; }
  std::string Load(uint64_t i, const ImagePreparation&, PreparationBuffers*, float* out,
                   ItemLabel* label) const override {
    out[0] = out[1] = static_cast<float>(i + 1);
    label->number = static_cast<int64_t>(i);
    return i % 3 == 2 ? "broken" : "";
  }
};

}  // namespace crema

#endif  // CREMA_TESTS_INFERENCE_SMALL_IMAGES_H_
