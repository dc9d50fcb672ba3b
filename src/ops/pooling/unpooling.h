// What max pooling took, put back where it was (Badrinarayanan et al., "SegNet", 2015), f32 in CPU memory.
#ifndef CREMA_OPS_POOLING_UNPOOLING_H_
#define CREMA_OPS_POOLING_UNPOOLING_H_

#include <cstdint>

#include "base/multiversion.h"
#include "crema/tensor.h"

namespace crema {

// Planes of `pixels` elements become planes of `result_pixels`.
struct UnpoolingProblem {
  int64_t images = 1, channels = 1;
  int64_t pixels = 1, result_pixels = 1;
  Layout layout = Layout::kPlain;  // of all tensors

  CREMA_HOST_DEVICE int64_t inputs() const { return images * channels * pixels; }
  CREMA_HOST_DEVICE int64_t outputs() const { return images * channels * result_pixels; }
};

// y[index[i]] = x[i] within each plane, the last one where several have one index; 0 elsewhere. Indices must be whole
// numbers in [0, result_pixels) (FindBadIndex of ops/arrays/embed.h). Threaded; allocates nothing.
void UnpoolingForward(const UnpoolingProblem& problem, const float* x, const float* index, float* y);
// dx[i] = dy[index[i]], also of elements that another one was written over, as SegNet's layer does.
void UnpoolingBackward(const UnpoolingProblem& problem, const float* index, const float* dy, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_POOLING_UNPOOLING_H_
