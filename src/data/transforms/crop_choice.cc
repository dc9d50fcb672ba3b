#include "data/transforms/crop_choice.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace crema {

namespace {

// In quarters of the way from the first to the last place, rows before columns.
struct CropPlace {
  int top, left;
};
// The corners, the centre; the middles of the sides, and halfway between centre and corners.
constexpr std::array<CropPlace, 13> kCropPlaces = {
    {{0, 0}, {0, 4}, {4, 0}, {4, 4}, {2, 2}, {0, 2}, {4, 2}, {2, 0}, {2, 4}, {1, 1}, {1, 3}, {3, 1}, {3, 3}}};
constexpr int kFewPlaces = 5;

// Sides that differ by less from crop_size are crop_size, so that nothing is resized for a pixel or two.
constexpr int kNearCrop = 3;

}  // namespace

std::optional<CropChoice> CropChoice::Of(const TransformationParameter& param) {
  if (!param.fix_crop() && !param.multi_scale()) return {};
  return CropChoice(param);
}

CropChoice::CropChoice(const TransformationParameter& param)
    : crop_(static_cast<int>(param.crop_size())),
      max_distort_(param.max_distort()),
      places_(!param.fix_crop()       ? 0
              : param.more_fix_crop() ? static_cast<int>(kCropPlaces.size())
                                      : kFewPlaces) {
  if (!param.multi_scale()) return;
  ratios_.assign(param.scale_ratios().begin(), param.scale_ratios().end());
  if (ratios_.empty()) ratios_ = {1, 0.875f, 0.75f, 0.66f};
  max_distort_ = std::min(max_distort_, static_cast<int>(ratios_.size()));
}

CropChoice::Size CropChoice::DrawSize(int height, int width, const RandomStream& random, uint64_t number) const {
  if (ratios_.empty()) return {crop_, crop_};
  const auto side_of = [&, base = static_cast<float>(std::min(height, width))](float ratio) {
    const int side = std::max(1, static_cast<int>(base * ratio));
    return std::abs(side - crop_) < kNearCrop ? crop_ : side;
  };
  // Pairs in the order of heights, then of widths.
  const int ratios = static_cast<int>(ratios_.size());
  const auto first_width = [&](int h) { return std::max(0, h - max_distort_); };
  const auto widths = [&](int h) { return std::min(ratios - 1, h + max_distort_) - first_width(h) + 1; };
  int pairs = 0;
  for (int h = 0; h < ratios; ++h) pairs += widths(h);
  auto pair = static_cast<int>(random.Below(number, static_cast<uint64_t>(pairs)));
  int h = 0;
  for (; pair >= widths(h); ++h) pair -= widths(h);
  return {side_of(ratios_[static_cast<size_t>(h)]), side_of(ratios_[static_cast<size_t>(first_width(h) + pair)])};
}

ImageArea CropChoice::Draw(int height, int width, const RandomStream& random, uint64_t first) const {
  const Size size = DrawSize(height, width, random, first);
  const int rows = height - size.height, columns = width - size.width;
  if (places_ > 0) {
    const CropPlace place = kCropPlaces[random.Below(first + 1, static_cast<uint64_t>(places_))];
    return {rows / 4 * place.top, columns / 4 * place.left, size.height, size.width};
  }
  const auto top = random.Below(first + 1, static_cast<uint64_t>(rows + 1));
  const auto left = random.Below(first + 2, static_cast<uint64_t>(columns + 1));
  return {static_cast<int>(top), static_cast<int>(left), size.height, size.width};
}

}  // namespace crema
