// Resizing images.
#ifndef CREMA_IMAGE_RESIZE_H_
#define CREMA_IMAGE_RESIZE_H_

#include <vector>

#include "image/image.h"

namespace crema {

// The working memory of ResizeBilinear, kept from call to call.
struct ResizeBuffers {
  struct Tap {
    int first, second;  // bytes from the row's begin; pixels
    int first_weight, second_weight;
  };
  std::vector<Tap> columns;
  std::vector<int> upper, lower;
};

// Bilinear interpolation of `area`, which lies within `from`, to height x width, all at least 1: in the same
// fixed-point arithmetic as OpenCV's resize with INTER_LINEAR on bytes (weights of 11 bits; exact halves are means of
// four pixels), so that images equal those of Caffe's convert_imageset bit for bit. No smoothing: of what is made much
// smaller most pixels are left out. `to` must not be `from`.
void ResizeBilinear(const Image& from, const ImageArea& area, int height, int width, ResizeBuffers* buffers, Image* to);
void ResizeBilinear(const Image& from, int height, int width, ResizeBuffers* buffers, Image* to);

// The nearest pixel instead, by the centres of pixels: for labels, which are no amounts.
void ResizeNearest(const Image& from, const ImageArea& area, int height, int width, Image* to);

// The size at which the shorter side has `shorter_side` pixels and the proportions are kept, the longer side rounded.
struct ImageExtent {
  int height = 0, width = 0;
};
ImageExtent WithShorterSide(int height, int width, int shorter_side);

}  // namespace crema

#endif  // CREMA_IMAGE_RESIZE_H_
