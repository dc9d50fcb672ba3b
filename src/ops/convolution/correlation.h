// How well windows of two images match (Fischer et al., "FlowNet: Learning Optical Flow with Convolutional Networks",
// 2015), plain f32 in CPU memory.
#ifndef CREMA_OPS_CONVOLUTION_CORRELATION_H_
#define CREMA_OPS_CONVOLUTION_CORRELATION_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// Both images are images x channels x height x width with `pad` zeros around each plane; positions count them. The
// result is images x displacements x rows x columns: the window of the first image whose first pixel is (reach, reach)
// + stride * (row, column) and that of the second displaced by (down, across), multiples of `step` from -radius * step
// to radius * step, across the faster one; compared element by element, a mean over channels and window.
struct CorrelationProblem {
  int64_t images = 1, channels = 1, height = 1, width = 1, pad = 0;
  int64_t rows = 1, columns = 1, stride = 1;
  int64_t kernel = 1;            // side of the windows
  int64_t reach = 0;             // pixels that windows of the second image may lie away: at least radius * step
  int64_t radius = 0, step = 1;  // of displacements
  bool subtract = false;         // absolute differences instead of products

  CREMA_HOST_DEVICE int64_t side() const { return 2 * radius + 1; }
  CREMA_HOST_DEVICE int64_t displacements() const { return side() * side(); }
  CREMA_HOST_DEVICE int64_t plane() const { return height * width; }
  CREMA_HOST_DEVICE float share() const { return 1.0f / static_cast<float>(kernel * kernel * channels); }
};

// For both images with their padding, in either pass.
size_t CorrelationWorkspace(const CorrelationProblem& problem);
// Threaded; overwrites all of y.
void CorrelationForward(const CorrelationProblem& problem, const float* first, const float* second, float* y,
                        std::byte* workspace);
// Overwrites all of the gradients; either may be null. The difference of equal elements has no slope. Threaded; sums
// are the same on any number of threads.
void CorrelationBackward(const CorrelationProblem& problem, const float* first, const float* second, const float* dy,
                         float* first_gradient, float* second_gradient, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_CORRELATION_H_
