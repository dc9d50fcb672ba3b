// Random sizes of images: img_rand_resize, rand_resize_ratio and the stretches of transform_param, as NVIDIA's fork of
// Caffe draws them.
#ifndef CREMA_DATA_TRANSFORMS_RANDOM_RESIZE_H_
#define CREMA_DATA_TRANSFORMS_RANDOM_RESIZE_H_

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "crema/data.pb.h"
#include "image/resize.h"

namespace crema {

class RandomResize {
 public:
  // Empty where no field asks for it.
  static std::optional<RandomResize> Of(const TransformationParameter& param);

  // Clears the fields that do.
  static void Clear(TransformationParameter* param);
  // Gives both bounds of each of them their middle.
  static void TakeMiddles(TransformationParameter* param);

  // What an image of height x width is resized to. Reads the numbers from `first` to `first` + 4 of `random`.
  ImageExtent Draw(int height, int width, const RandomStream& random, uint64_t first) const;
  // The largest that Draw may give.
  ImageExtent Largest(int height, int width) const;
  // Whether no image of height x width comes out smaller than crop_size.
  bool Fits(int height, int width) const { return allows_upscale_ || (height >= crop_ && width >= crop_); }

 private:
  struct Range {
    double low, high;
    double At(float share) const { return low + (high - low) * static_cast<double>(share); }
  };

  // What is drawn, or the largest of it.
  struct Draws {
    int shorter;  // side, in pixels
    bool widens;  // a square
    double ratio, vertical, horizontal;
  };

  explicit RandomResize(const TransformationParameter& param);
  ImageExtent Resized(int height, int width, const Draws& draws) const;

  int crop_, shortest_, longest_;  // 0: the shorter side stays
  Range ratio_, vertical_, horizontal_;
  bool allows_upscale_;
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_RANDOM_RESIZE_H_
