// Resizing to one size: whatever the proportions, or keeping them, in the middle of a border.
#ifndef CREMA_IMAGE_RESIZER_H_
#define CREMA_IMAGE_RESIZER_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "image/image.h"
#include "image/resize.h"

namespace crema {

struct ImageBorder {
  enum class Kind {
    kColor,
    kMirrored,  // about the outermost pixels, which are not repeated
    kNearest,   // the outermost pixels
  };
  Kind kind = Kind::kColor;
  std::vector<uint8_t> color;  // of each channel, or of all
};

// Immutable, so any number of threads may use it.
class Resizer {
 public:
  // Whatever the proportions.
  Resizer() = default;
  // Keeping them: as large as fits, rounded down, in the middle.
  explicit Resizer(ImageBorder border) : border_(std::move(border)) {}

  bool keeps_proportions() const { return border_.has_value(); }
  // Where in a result of size `whole` an image of that size lies; at least a pixel.
  ImageArea PlaceOf(const ImageExtent& image, const ImageExtent& whole) const;
  // As ResizeBilinear (image/resize.h).
  void Resize(const Image& from, const ImageArea& area, const ImageExtent& whole, ResizeBuffers* buffers,
              Image* to) const;
  void Resize(const FramedImage& from, const ImageExtent& whole, ResizeBuffers* buffers, Image* to) const;

 private:
  std::optional<ImageBorder> border_;
};

}  // namespace crema

#endif  // CREMA_IMAGE_RESIZER_H_
