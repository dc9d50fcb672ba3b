#include "data/random_resize.h"

#include <algorithm>
#include <cmath>

namespace crema {

std::optional<RandomResize> RandomResize::Of(const TransformationParameter& param) {
  const bool stretches = param.vertical_stretch_lower() != 1 || param.vertical_stretch_upper() != 1 ||
                         param.horizontal_stretch_lower() != 1 || param.horizontal_stretch_upper() != 1;
  if (param.img_rand_resize_upper() == 0 && param.rand_resize_ratio_upper() == 0 && !stretches) return {};
  return RandomResize(param);
}

void RandomResize::Clear(TransformationParameter* param) {
  param->clear_img_rand_resize_lower();
  param->clear_img_rand_resize_upper();
  param->clear_rand_resize_ratio_lower();
  param->clear_rand_resize_ratio_upper();
  param->clear_vertical_stretch_lower();
  param->clear_vertical_stretch_upper();
  param->clear_horizontal_stretch_lower();
  param->clear_horizontal_stretch_upper();
}

RandomResize::RandomResize(const TransformationParameter& param)
    : crop_(static_cast<int>(param.crop_size())),
      shortest_(static_cast<int>(param.img_rand_resize_lower())),
      longest_(static_cast<int>(param.img_rand_resize_upper())),
      ratio_{param.rand_resize_ratio_lower(), param.rand_resize_ratio_upper()},
      vertical_{param.vertical_stretch_lower(), param.vertical_stretch_upper()},
      horizontal_{param.horizontal_stretch_lower(), param.horizontal_stretch_upper()},
      allows_upscale_(param.allow_upscale()) {}

ImageExtent RandomResize::Draw(int height, int width, const RandomStream& random, uint64_t first) const {
  const int shorter = std::min(height, width);
  const int drawn =
      longest_ == 0
          ? shorter
          : shortest_ + static_cast<int>(random.Below(first, static_cast<uint64_t>(longest_ - shortest_ + 1)));
  const auto scaled = [&](int side) { return static_cast<double>(side) * drawn / shorter; };
  double tall = scaled(height), wide = scaled(width);
  if (ratio_.high > 0) {
    const bool widens = width == height ? random.Below(first + 1, 2) == 1 : width > height;
    (widens ? wide : tall) = drawn * ratio_.At(random.Uniform(first + 2));
  }
  tall *= vertical_.At(random.Uniform(first + 3));
  wide *= horizontal_.At(random.Uniform(first + 4));
  const auto side = [&](double wanted, int present) {
    const int least = std::max(crop_, static_cast<int>(std::lround(wanted)));
    return allows_upscale_ ? least : std::min(least, present);
  };
  return {side(tall, height), side(wide, width)};
}

}  // namespace crema
