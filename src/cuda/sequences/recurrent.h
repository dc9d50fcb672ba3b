// The state of recurrent layers in kernels.
#ifndef CREMA_CUDA_SEQUENCES_RECURRENT_H_
#define CREMA_CUDA_SEQUENCES_RECURRENT_H_

#include "cuda/device/launch.h"
#include "ops/sequences/recurrent_formulas.h"

namespace crema::cuda {

// y[row] = k[row] * x[row], for each element.
struct KeepRows {
  int64_t width;
  const float *continuation, *x;
  float* y;

  __device__ void operator()(int64_t at) const { y[at] = recurrent::Kept(continuation[at / width], x[at]); }
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_SEQUENCES_RECURRENT_H_
