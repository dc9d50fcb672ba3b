// What losses on a GPU share: how their sums end, and what their gradients are multiplied by.
#ifndef CREMA_CUDA_LOSSES_LOSSES_H_
#define CREMA_CUDA_LOSSES_LOSSES_H_

#include "cuda/arrays/sums.h"

namespace crema::cuda {

struct DivideBy {
  double divisor;
  float* value;
  __device__ void operator()(double total) const { *value = static_cast<float>(total / divisor); }
};

// Of a sum that counts what the loss is divided by.
struct KeepCount {
  float* normalizer;
  __device__ void operator()(double total) const { *normalizer = static_cast<float>(total > 1 ? total : 1.0); }
};
// Divides by `known`, which is kept, or where that is 0 by what was.
struct DivideByKept {
  int64_t known;
  float *normalizer, *value;
  __device__ void operator()(double total) const {
    if (known > 0) *normalizer = static_cast<float>(known);
    *value = static_cast<float>(total / static_cast<double>(*normalizer));
  }
};

struct LossGradientScale {
  const float *value_gradient, *normalizer;  // the second null: divisor
  float divisor = 1;
  __device__ float operator()() const { return *value_gradient / (normalizer ? *normalizer : divisor); }
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_LOSSES_LOSSES_H_
