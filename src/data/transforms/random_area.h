// Random rectangles: what is cut out of images, and what is erased.
#ifndef CREMA_DATA_TRANSFORMS_RANDOM_AREA_H_
#define CREMA_DATA_TRANSFORMS_RANDOM_AREA_H_

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "image/image.h"

namespace crema {

// The rectangle of random_resized_crop (Szegedy et al., "Going Deeper with Convolutions", 2014) and random_erasing: the
// area is drawn evenly, the proportions evenly by their logarithm, the place evenly.
class RandomArea {
 public:
  static constexpr int kTries = 10, kNumbersPerTry = 4;

  // `param`: a RandomResizedCropParameter or RandomErasingParameter.
  template <typename Parameter>
  explicit RandomArea(const Parameter& param)
      : min_area_(param.min_area()),
        max_area_(param.max_area()),
        min_aspect_(param.min_aspect()),
        max_aspect_(param.max_aspect()) {}

  // The first of kTries draws that lies within height x width; else the largest rectangle from the centre that has
  // allowed proportions. Reads the numbers from `first` to `first` + kTries * kNumbersPerTry - 1 of `random`.
  ImageArea Draw(int height, int width, const RandomStream& random, uint64_t first) const;
  // The same; empty where no draw lies within.
  std::optional<ImageArea> Try(int height, int width, const RandomStream& random, uint64_t first) const;

 private:
  ImageArea Centre(int height, int width) const;

  double min_area_, max_area_, min_aspect_, max_aspect_;
};

// The largest of 8, 4, 2 that leaves both sides of the area at least `side` pixels long; else 1.
int LargestReduction(const ImageArea& area, int side);

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_RANDOM_AREA_H_
