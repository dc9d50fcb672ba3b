// Where the windows of a deformable convolution look, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_CONVOLUTION_DEFORMABLE_IM2COL_FORMULAS_H_
#define CREMA_OPS_CONVOLUTION_DEFORMABLE_IM2COL_FORMULAS_H_

#include <cstdint>

#include "ops/convolution/deformable_im2col.h"
#include "ops/sampling/bilinear_formulas.h"

namespace crema::deformable {

using bilinear::Point;

// Along one axis: place k of window `window`.
CREMA_FORMULA Point PointOf(const Im2colProblem::Axis& axis, bool fades, int64_t window, int64_t k, float offset) {
  const auto pixel = static_cast<int32_t>(window * axis.stride + k * axis.dilation - axis.pad);
  const auto extent = static_cast<int32_t>(axis.input);
  const float position = static_cast<float>(pixel) + offset;
  return fades ? bilinear::PointAt(position, extent) : bilinear::PointOfEdged(position, extent);
}

}  // namespace crema::deformable

#endif  // CREMA_OPS_CONVOLUTION_DEFORMABLE_IM2COL_FORMULAS_H_
