// The arithmetic of ops/batch_norm.h for one channel, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_BATCH_NORM_FORMULAS_H_
#define CREMA_OPS_BATCH_NORM_FORMULAS_H_

#include <cmath>

#include "base/multiversion.h"
#include "ops/batch_norm.h"

namespace crema::batch_norm {

// What the running sums are multiplied with.
CREMA_HOST_DEVICE inline float RunningFactor(const BatchNormBlobs& blobs) {
  return *blobs.weight_sum == 0 ? 0 : 1 / *blobs.weight_sum;
}

// Of one channel; those of all must be done before UpdateWeight where unit_weight is set.
CREMA_HOST_DEVICE inline void UpdateRunning(const BatchNormScalars& norm, const BatchNormBlobs& blobs, int64_t c,
                                            float mean, float variance) {
  const float count = static_cast<float>(norm.per_channel);
  const float unbiased = count > 1 ? count / (count - 1) : 1;
  float kept = norm.fraction, added = 1;
  if (norm.unit_weight) {
    kept *= RunningFactor(blobs);
    added = *blobs.weight_sum == 0 ? 1 : 1 - norm.fraction;
  }
  blobs.mean_sum[c] = blobs.mean_sum[c] * kept + mean * added;
  blobs.variance_sum[c] = blobs.variance_sum[c] * kept + unbiased * variance * added;
}
CREMA_HOST_DEVICE inline void UpdateWeight(const BatchNormScalars& norm, const BatchNormBlobs& blobs) {
  *blobs.weight_sum = norm.unit_weight ? 1 : *blobs.weight_sum * norm.fraction + 1;
}

CREMA_HOST_DEVICE inline void ForwardCoefficients(const BatchNormScalars& norm, const BatchNormForward& arrays,
                                                  int64_t c) {
  const float inverse = 1 / std::sqrt(arrays.inverse_deviation[c] + norm.eps);
  arrays.inverse_deviation[c] = inverse;
  arrays.scale[c] = inverse * (arrays.gain ? arrays.gain[c] : 1);
}

CREMA_HOST_DEVICE inline void BackwardCoefficients(const BatchNormScalars& norm, const BatchNormBackward& arrays,
                                                   int64_t c) {
  const float count = static_cast<float>(norm.per_channel);
  const float inverse = arrays.inverse_deviation[c];
  if (arrays.gain_gradient) arrays.gain_gradient[c] = arrays.product[c] * inverse;
  if (arrays.shift_gradient) arrays.shift_gradient[c] = arrays.sum[c];
  const float a = inverse * (arrays.gain ? arrays.gain[c] : 1);
  arrays.a[c] = a;
  if (!arrays.b) return;
  arrays.b[c] = -a * inverse * inverse * arrays.product[c] / count;
  arrays.c[c] = -a * arrays.sum[c] / count;
}

// What the weights of output c are multiplied with; `factor`: RunningFactor.
CREMA_HOST_DEVICE inline float FoldedScale(const BatchNormScalars& norm, const FoldedArrays& arrays, float factor,
                                           int64_t c) {
  return (arrays.gain ? arrays.gain[c] : 1) / std::sqrt(arrays.running.variance_sum[c] * factor + norm.eps);
}
CREMA_HOST_DEVICE inline float FoldedBias(const FoldedArrays& arrays, float factor, float scale, int64_t c) {
  return ((arrays.bias ? arrays.bias[c] : 0) - arrays.running.mean_sum[c] * factor) * scale +
         (arrays.shift ? arrays.shift[c] : 0);
}

}  // namespace crema::batch_norm

#endif  // CREMA_OPS_BATCH_NORM_FORMULAS_H_
