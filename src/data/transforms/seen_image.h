// What a net is to see of an image, while it is bytes still.
#ifndef CREMA_DATA_TRANSFORMS_SEEN_IMAGE_H_
#define CREMA_DATA_TRANSFORMS_SEEN_IMAGE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "image/affine.h"
#include "image/image.h"

namespace crema {

// An image of the result's size, of whose rows the pixels of `runs` come from the image that was read. All others hold
// `border`, a byte for each channel; they count in no statistics of colours and do not become values. Kept from image
// to image.
struct SeenImage {
  Image image;
  std::vector<PixelRun> runs;
  std::vector<uint8_t> border;
  Image other;  // of image's size; steps that cannot work in place write to it
  std::vector<PixelRun> other_runs;

  // Whether all pixels come from the image.
  bool covers() const;
  // What steps wrote to `other` takes the place of the image.
  void Swap() { std::swap(image, other); }
  // Writes `border` around the runs again.
  void RestoreBorder();

  enum class Sampling { kBilinear, kNearest };
  // What comes from outside gets `border`.
  void Move(const AffineMap& map, Sampling sampling);

  // Calls row(first byte, number of pixels) for each run.
  template <typename Row>
  void ForEachRun(const Row& row) {
    for (int y = 0; y < image.height; ++y) {
      const PixelRun& run = runs[static_cast<size_t>(y)];
      if (run.count > 0) row(image.row(y) + run.first * image.channels, run.count);
    }
  }
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_SEEN_IMAGE_H_
