// From a stored image to what a net sees: Caffe's transform_param.
#ifndef CREMA_DATA_TRANSFORM_H_
#define CREMA_DATA_TRANSFORM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "crema/state.pb.h"
#include "data/image_size.h"
#include "data/mean_file.h"

namespace crema {

// (x - mean) * scale over an optional crop (random in TRAIN, the centre in TEST), mirrored along the width for half of
// the images in both phases where mirror is set. Immutable, so any number of threads may use it.
class Transform {
 public:
  // `mean_file` is where param.mean_file() was found; read here. Throws UserError where fields contradict each other,
  // and as ReadMean.
  Transform(const TransformationParameter& param, Phase phase, const std::string& mean_file);

  // Size of the result for an image of that size.
  ImageSize OutputSize(const ImageSize& image) const;
  // What is wrong, with the remedy, where an image does not fit the crop, the mean image or the number of mean values;
  // empty where it fits.
  std::string Check(const ImageSize& image) const;

  // Transforms one image of `size`, which Check must have accepted, to OutputSize(size).count() values. The numbers 0
  // (mirror), 1 and 2 (crop's row and column) of `random` decide.
  void Apply(const uint8_t* image, const ImageSize& size, const RandomStream& random, float* out) const;
  void Apply(const float* image, const ImageSize& size, const RandomStream& random, float* out) const;

 private:
  template <typename Value>
  void ApplyTo(const Value* image, const ImageSize& size, const RandomStream& random, float* out) const;

  float scale_;
  bool mirror_;
  int32_t crop_;
  bool random_crop_;
  std::vector<float> mean_values_;
  std::string mean_file_;
  std::optional<MeanImage> mean_;
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORM_H_
