// Images of a batch mixed with each other: mixup (Zhang et al., 2018) and CutMix (Yun et al., 2019).
#ifndef CREMA_OPS_SAMPLING_MIX_UP_H_
#define CREMA_OPS_SAMPLING_MIX_UP_H_

#include <cstdint>

#include "base/multiversion.h"
#include "base/random.h"
#include "crema/tensor.h"

namespace crema {

struct MixUpProblem {
  int64_t images = 1, classes = 2;
  // An image in the order of memory: planes x height x width x channels, one of the outer two for each layout. Without
  // CutMix only their product counts.
  int64_t planes = 1, height = 1, width = 1, channels = 1;
  // Of the distributions Beta(alpha, alpha) that shares are drawn from; 0: nothing is mixed so. Not both are 0.
  float alpha = 0, cutmix_alpha = 0;
  float cutmix_share = 0;  // of the images that are mixed, where neither is 0: how many CutMix mixes
  float probability = 1;   // that an image is mixed

  CREMA_HOST_DEVICE int64_t image_size() const { return planes * height * width * channels; }
};

// What was drawn for an image. Either a rectangle of pixels comes from another image, or all of them are blended.
struct alignas(16) ImageMix {
  float share;                       // what remains of itself, in pixels or in each; 1: all, it is not mixed
  int32_t other;                     // which image of the batch it is mixed with
  int32_t top, bottom, left, right;  // pixels of the rectangle, ends excluded; blended where it is empty

  CREMA_HOST_DEVICE bool cuts() const { return bottom > top; }
};

// Draws the mix of each image: whether it is mixed, how, with which other one (all have equal chances) and the share. A
// pure function of the stream and the image's place.
void DrawMixes(const MixUpProblem& problem, const RandomStream& random, ImageMix* mixes);
// y = share * x + (1 - share) * x of the other, or x with the other's rectangle, image by image; f32 or bf16, and on
// GPUs f16. y must not be x. Threaded.
void MixImages(const MixUpProblem& problem, const ImageMix* mixes, const Tensor& x, const Tensor& y);
// target[image][class]: share of the image's label, 1 - share of the other's; 1 where both are one. Without mixes
// (null) all is the label's. Labels are class numbers and must be good (FindBadLabel).
void MixLabels(const MixUpProblem& problem, const ImageMix* mixes, const float* label, float* target);

}  // namespace crema

#endif  // CREMA_OPS_SAMPLING_MIX_UP_H_
