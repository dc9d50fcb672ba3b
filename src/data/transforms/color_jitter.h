// Random changes of colour.
#ifndef CREMA_DATA_TRANSFORMS_COLOR_JITTER_H_
#define CREMA_DATA_TRANSFORMS_COLOR_JITTER_H_

#include <cstdint>
#include <span>

#include "base/random.h"
#include "crema/data.pb.h"
#include "image/affine.h"
#include "image/image.h"

namespace crema {

// What happens to the colours of one image: x * brightness, then (x - mean) * contrast + mean, then (x - luminance) *
// saturation + luminance, each cut off at 0 and 255; then hues, in HSV, are shifted by `hue` turns.
struct ColorChange {
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
  float mean = 0;  // luminance of the image after the first step
};

// Shares of blue, green and red in luminance (ITU-R BT.601).
constexpr float kBlueShare = 0.114f, kGreenShare = 0.587f, kRedShare = 0.299f;

class ColorJitter {
 public:
  ColorJitter() = default;  // changes nothing
  explicit ColorJitter(const ColorJitterParameter& param)
      : brightness_(param.brightness()),
        contrast_(param.contrast()),
        saturation_(param.saturation()),
        hue_(param.hue()) {}

  bool changes() const { return brightness_ > 0 || contrast_ > 0 || saturation_ > 0 || hue_ > 0; }
  // The change of `area` of an image of one or three channels, from the numbers `first` to `first` + 2 and `hue` of
  // `random`. `runs`: what counts of each row of the area; none: all.
  ColorChange Draw(const Image& image, const ImageArea& area, const RandomStream& random, uint64_t first, uint64_t hue,
                   std::span<const PixelRun> runs = {}) const;

 private:
  float brightness_ = 0, contrast_ = 0, saturation_ = 0, hue_ = 0;
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_COLOR_JITTER_H_
