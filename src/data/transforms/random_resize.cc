#include "data/transforms/random_resize.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

void RandomResize::TakeMiddles(TransformationParameter* param) {
  const auto middle = [](float lower, float upper) { return lower + (upper - lower) / 2; };
  const uint32_t shorter = (param->img_rand_resize_lower() + param->img_rand_resize_upper()) / 2;
  param->set_img_rand_resize_lower(shorter);
  param->set_img_rand_resize_upper(shorter);
  const float ratio = middle(param->rand_resize_ratio_lower(), param->rand_resize_ratio_upper());
  param->set_rand_resize_ratio_lower(ratio);
  param->set_rand_resize_ratio_upper(ratio);
  const float vertical = middle(param->vertical_stretch_lower(), param->vertical_stretch_upper());
  param->set_vertical_stretch_lower(vertical);
  param->set_vertical_stretch_upper(vertical);
  const float horizontal = middle(param->horizontal_stretch_lower(), param->horizontal_stretch_upper());
  param->set_horizontal_stretch_lower(horizontal);
  param->set_horizontal_stretch_upper(horizontal);
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
  Draws draws{};
  draws.shorter =
      longest_ == 0
          ? std::min(height, width)
          : shortest_ + static_cast<int>(random.Below(first, static_cast<uint64_t>(longest_ - shortest_ + 1)));
  draws.widens = random.Below(first + 1, 2) == 1;
  draws.ratio = ratio_.At(random.Uniform(first + 2));
  draws.vertical = vertical_.At(random.Uniform(first + 3));
  draws.horizontal = horizontal_.At(random.Uniform(first + 4));
  return Resized(height, width, draws);
}

ImageExtent RandomResize::Largest(int height, int width) const {
  const int shorter = longest_ == 0 ? std::min(height, width) : longest_;
  return Resized(height, width, {shorter, true, ratio_.high, vertical_.high, horizontal_.high});
}

ImageExtent RandomResize::Resized(int height, int width, const Draws& draws) const {
  const auto scaled = [&](int side) { return static_cast<double>(side) * draws.shorter / std::min(height, width); };
  double tall = scaled(height), wide = scaled(width);
  if (ratio_.high > 0) {
    const bool widens = width == height ? draws.widens : width > height;
    (widens ? wide : tall) = draws.shorter * draws.ratio;
  }
  const auto side = [&](double wanted, int present) {
    const int least =
        std::max(crop_, static_cast<int>(std::min<double>(std::round(wanted), std::numeric_limits<int>::max())));
    return allows_upscale_ ? least : std::min(least, present);
  };
  return {side(tall * draws.vertical, height), side(wide * draws.horizontal, width)};
}

}  // namespace crema
