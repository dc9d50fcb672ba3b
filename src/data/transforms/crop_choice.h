// Crops at fixed places and of several sizes: fix_crop and multi_scale of transform_param, as Temporal Segment Networks
// choose them (yjxiong/caffe; Wang et al., "Temporal Segment Networks", 2016).
#ifndef CREMA_DATA_TRANSFORMS_CROP_CHOICE_H_
#define CREMA_DATA_TRANSFORMS_CROP_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "image/image.h"

namespace crema {

class CropChoice {
 public:
  static constexpr int kNumbers = 3;

  // Empty where no field asks for it.
  static std::optional<CropChoice> Of(const TransformationParameter& param);

  // Whether areas have other sizes than crop_size, to which they are to be resized.
  bool resizes() const { return !ratios_.empty(); }

  // What is cut out of height x width, both at least crop_size. Reads the numbers from `first` to `first` + kNumbers -
  // 1 of `random`.
  ImageArea Draw(int height, int width, const RandomStream& random, uint64_t first) const;

 private:
  struct Size {
    int height, width;
  };

  explicit CropChoice(const TransformationParameter& param);
  Size DrawSize(int height, int width, const RandomStream& random, uint64_t number) const;

  int crop_, max_distort_, places_;  // places: 0: anywhere
  std::vector<float> ratios_;        // empty: one size
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_CROP_CHOICE_H_
