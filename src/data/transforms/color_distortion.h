// Random changes of colour as SSD makes them (distort_param).
#ifndef CREMA_DATA_TRANSFORMS_COLOR_DISTORTION_H_
#define CREMA_DATA_TRANSFORMS_COLOR_DISTORTION_H_

#include <cstdint>

#include "base/random.h"
#include "crema/data.pb.h"
#include "image/image.h"

namespace crema {

// In this order: brightness (values are shifted), contrast (multiplied), saturation and hue, and the order of channels;
// or, as likely, with contrast behind the hue. Saturation and hue are those of OpenCV's HSV of bytes: hues from 0 to
// 179 in units of two degrees; those that are shifted below 0 become 0, those above 179 go round. Results of each step
// are rounded and cut off at 0 and 255. Immutable, so any number of threads may use it.
class ColorDistortion {
 public:
  static constexpr uint64_t kNumbers = 11;

  ColorDistortion() = default;  // changes nothing
  explicit ColorDistortion(const DistortionParameter& param) : param_(param) {}

  bool changes() const { return param_.brightness_prob() > 0 || param_.contrast_prob() > 0 || needs_colors(); }
  // Only images of three channels have them.
  bool needs_colors() const {
    return param_.saturation_prob() > 0 || param_.hue_prob() > 0 || param_.random_order_prob() > 0;
  }
  // Changes `area` of the image, by the numbers `first` to `first` + kNumbers - 1 of `random`.
  void Apply(const RandomStream& random, uint64_t first, const ImageArea& area, Image* image) const;

 private:
  DistortionParameter param_;
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_COLOR_DISTORTION_H_
