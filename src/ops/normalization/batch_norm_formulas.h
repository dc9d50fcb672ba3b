// The arithmetic of ops/normalization/batch_norm.h for one channel, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_NORMALIZATION_BATCH_NORM_FORMULAS_H_
#define CREMA_OPS_NORMALIZATION_BATCH_NORM_FORMULAS_H_

#include <cmath>

#include "base/multiversion.h"
#include "ops/normalization/batch_norm.h"

namespace crema::batch_norm {

// What the running sums are multiplied with.
CREMA_HOST_DEVICE inline float RunningFactor(const BatchNormBlobs& blobs) {
  return *blobs.weight_sum == 0 ? 0 : 1 / *blobs.weight_sum;
}

// Of one channel; those of all must be done before UpdateWeight where it is kUnitWeight.
CREMA_HOST_DEVICE inline void UpdateRunning(const BatchNormScalars& norm, const BatchNormBlobs& blobs, int64_t c,
                                            float mean, float variance) {
  const float count = static_cast<float>(norm.per_channel);
  float kept = norm.fraction, added = 1;
  if (norm.running == RunningStatistics::kUnitWeight) {
    kept *= RunningFactor(blobs);
    added = *blobs.weight_sum == 0 ? 1 : 1 - norm.fraction;
  } else if (norm.running == RunningStatistics::kAverages) {
    added = 1 - norm.fraction;
  }
  const float unbiased = norm.running != RunningStatistics::kAverages && count > 1 ? count / (count - 1) : 1;
  blobs.mean_sum[c] = blobs.mean_sum[c] * kept + mean * added;
  blobs.variance_sum[c] = blobs.variance_sum[c] * kept + unbiased * variance * added;
}
CREMA_HOST_DEVICE inline void UpdateWeight(const BatchNormScalars& norm, const BatchNormBlobs& blobs) {
  if (norm.running == RunningStatistics::kAverages) return;
  *blobs.weight_sum = norm.running == RunningStatistics::kUnitWeight ? 1 : *blobs.weight_sum * norm.fraction + 1;
}

CREMA_HOST_DEVICE inline void ForwardCoefficients(const BatchNormScalars& norm, const BatchNormForward& arrays,
                                                  int64_t c, float mean, float variance) {
  const float inverse = 1 / std::sqrt(variance + norm.eps);
  arrays.mean[c] = mean;
  arrays.inverse_deviation[c] = inverse;
  arrays.scale[c] = inverse * (arrays.gain ? arrays.gain[c] : 1);
}

// `factor`: RunningFactor.
CREMA_HOST_DEVICE inline void CoefficientsFromRunning(const BatchNormScalars& norm, const BatchNormForward& arrays,
                                                      float factor, int64_t c) {
  ForwardCoefficients(norm, arrays, c, arrays.running.mean_sum[c] * factor, arrays.running.variance_sum[c] * factor);
}

// `sum`, `product`: of ChannelGradientSums.
CREMA_HOST_DEVICE inline void BackwardCoefficients(const BatchNormScalars& norm, const BatchNormBackward& arrays,
                                                   int64_t c, float sum, float product) {
  const float count = static_cast<float>(norm.per_channel);
  const float inverse = arrays.inverse_deviation[c];
  if (arrays.gain_gradient) arrays.gain_gradient[c] = product * inverse;
  if (arrays.shift_gradient) arrays.shift_gradient[c] = sum;
  const float a = inverse * (arrays.gain ? arrays.gain[c] : 1);
  arrays.a[c] = a;
  if (!arrays.b) return;
  arrays.b[c] = -a * inverse * inverse * product / count;
  arrays.c[c] = -a * sum / count;
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

#endif  // CREMA_OPS_NORMALIZATION_BATCH_NORM_FORMULAS_H_
