// Resizing images.
#ifndef CREMA_IMAGE_RESIZE_H_
#define CREMA_IMAGE_RESIZE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "image/image.h"

namespace crema {

// The working memory of resizing, kept from call to call.
struct ResizeBuffers {
  struct Tap {
    int first, second;  // bytes from the row's begin; pixels
    int first_weight, second_weight;
  };
  std::vector<Tap> columns;
  std::vector<int> upper, lower;
  std::vector<uint8_t> frame, crossing[2];  // rows of a FramedImage
  Image inner;                              // of a Resizer that keeps proportions
};

// A part of an image as it lies, from `top`, `left` on, in a larger one whose other pixels have one colour.
struct FramedImage {
  const Image& image;
  ImageArea seen;  // may be empty
  int top = 0, left = 0, height = 0, width = 0;
  std::span<const uint8_t> color;  // of each channel, or of all
};

// Bilinear interpolation of `area`, which lies within `from`, to height x width, all at least 1: in the same
// fixed-point arithmetic as OpenCV's resize with INTER_LINEAR on bytes (weights of 11 bits; exact halves are means of
// four pixels), so that images equal those of Caffe's convert_imageset bit for bit. No smoothing: of what is made much
// smaller most pixels are left out. `to` must not be `from`.
void ResizeBilinear(const Image& from, const ImageArea& area, int height, int width, ResizeBuffers* buffers, Image* to);
void ResizeBilinear(const Image& from, int height, int width, ResizeBuffers* buffers, Image* to);
// The same of the larger image, which is not made.
void ResizeBilinear(const FramedImage& from, int height, int width, ResizeBuffers* buffers, Image* to);

// An area that begins and ends anywhere, in pixels.
struct RealArea {
  double top = 0, left = 0, height = 0, width = 0;
};
// As ResizeBilinear, but of such an area, beside which the image goes on.
void ResizeRealArea(const Image& from, const RealArea& area, int height, int width, ResizeBuffers* buffers, Image* to);

// The nearest pixel instead, by the centres of pixels: for labels, which are no amounts.
void ResizeNearest(const Image& from, const ImageArea& area, int height, int width, ResizeBuffers* buffers, Image* to);

// The size at which the shorter side has `shorter_side` pixels and the proportions are kept, the longer side rounded.
struct ImageExtent {
  int height = 0, width = 0;
};
ImageExtent WithShorterSide(int height, int width, int shorter_side);

// Why an image is not resized so: a strip of a few pixels would become one of hundreds of millions. Empty where it is.
std::string ResizeProblem(const ImageExtent& from, const ImageExtent& to);

// The largest size of the same proportions whose shorter side has at most `shorter` pixels and its longer one at most
// `longer`, rounded; and what sides are multiplied by for it.
struct FittedExtent {
  ImageExtent extent;
  double scale = 1;
};
FittedExtent FitInto(int height, int width, int shorter, int longer);

}  // namespace crema

#endif  // CREMA_IMAGE_RESIZE_H_
