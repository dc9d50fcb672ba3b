// The pixels that the windows of a deformable convolution look at (Dai et al., "Deformable Convolutional Networks",
// 2017; Zhu et al., "Deformable ConvNets v2", 2018), plain f32 in CPU memory. With windows of one pixel the columns are
// the image as a flow warps it.
#ifndef CREMA_OPS_CONVOLUTION_DEFORMABLE_IM2COL_H_
#define CREMA_OPS_CONVOLUTION_DEFORMABLE_IM2COL_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"
#include "ops/convolution/im2col.h"

namespace crema {

// One image, channels x rows.input x columns.input, and its columns as Im2col lays them out: channels x places of the
// window x windows. For each of `groups`, which split the channels, and each place of the window there are two numbers
// a window, how many pixels further down and further right it looks (groups x places x 2 x windows), the latter first
// with `across_first`, and a factor (groups x places x windows), which is 1 where `factors` is null. Between pixels
// images are interpolated bilinearly.
struct DeformableIm2colProblem {
  int64_t channels = 1, groups = 1;
  Im2colProblem::Axis rows = {}, columns = {};
  // Images become 0 within one pixel around them. Else they end before their first row and column and one pixel behind
  // the last, which count alone from there on; beyond, what has no factor is `outside`.
  bool fades = true;
  float outside = 0;
  bool across_first = false;

  CREMA_HOST_DEVICE int64_t group_channels() const { return channels / groups; }
  CREMA_HOST_DEVICE int64_t plane() const { return rows.input * columns.input; }
  CREMA_HOST_DEVICE int64_t places() const { return rows.kernel * columns.kernel; }
  CREMA_HOST_DEVICE int64_t windows() const { return rows.output * columns.output; }
  // Where the numbers of a place begin, among its 2 x windows.
  CREMA_HOST_DEVICE int64_t first_down() const { return across_first ? windows() : 0; }
  CREMA_HOST_DEVICE int64_t first_across() const { return across_first ? 0 : windows(); }
};

// Threaded; overwrites all of `columns`.
void DeformableIm2col(const DeformableIm2colProblem& problem, const float* image, const float* offsets,
                      const float* factors, float* columns);
// What the columns' gradients give back to the image. Threaded; overwrites all of `image`. Sums are the same on any
// number of threads.
void DeformableCol2im(const DeformableIm2colProblem& problem, const float* columns, const float* offsets,
                      const float* factors, float* image);
// The gradients of offsets and factors by those of the columns; either may be null. On a pixel the slope towards the
// next one counts. Threaded; overwrites all of both.
void DeformableOffsetGradient(const DeformableIm2colProblem& problem, const float* columns, const float* image,
                              const float* offsets, const float* factors, float* offset_gradient,
                              float* factor_gradient);

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_DEFORMABLE_IM2COL_H_
