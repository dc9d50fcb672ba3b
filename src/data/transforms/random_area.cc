#include "data/transforms/random_area.h"

#include <algorithm>
#include <cmath>

namespace crema {

ImageArea RandomArea::Draw(int height, int width, const RandomStream& random, uint64_t first) const {
  const std::optional<ImageArea> area = Try(height, width, random, first);
  return area ? *area : Centre(height, width);
}

std::optional<ImageArea> RandomArea::Try(int height, int width, const RandomStream& random, uint64_t first) const {
  const double whole = static_cast<double>(height) * width;
  const double low = std::log(min_aspect_), high = std::log(max_aspect_);
  for (int i = 0; i < kTries; ++i, first += kNumbersPerTry) {
    const double area = whole * (min_area_ + (max_area_ - min_area_) * random.Uniform(first));
    const double aspect = std::exp(low + (high - low) * random.Uniform(first + 1));
    const auto wide = std::lround(std::sqrt(area * aspect)), tall = std::lround(std::sqrt(area / aspect));
    if (wide < 1 || tall < 1 || wide > width || tall > height) continue;
    const auto top = random.Below(first + 2, static_cast<uint64_t>(height - tall + 1));
    const auto left = random.Below(first + 3, static_cast<uint64_t>(width - wide + 1));
    return ImageArea{static_cast<int>(top), static_cast<int>(left), static_cast<int>(tall), static_cast<int>(wide)};
  }
  return {};
}

ImageArea RandomArea::Centre(int height, int width) const {
  const double aspect = std::clamp(static_cast<double>(width) / height, min_aspect_, max_aspect_);
  const int wide = std::clamp(static_cast<int>(std::lround(height * aspect)), 1, width);
  const int tall = std::clamp(static_cast<int>(std::lround(width / aspect)), 1, height);
  return {(height - tall) / 2, (width - wide) / 2, tall, wide};
}

int LargestReduction(const ImageArea& area, int side) {
  for (const int reduction : {8, 4, 2}) {
    if (area.height / reduction >= side && area.width / reduction >= side) return reduction;
  }
  return 1;
}

}  // namespace crema
