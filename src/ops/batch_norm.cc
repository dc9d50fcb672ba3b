#include "ops/batch_norm.h"

#include "ops/batch_norm_formulas.h"

namespace crema {

void UpdateRunning(const BatchNormScalars& norm, const BatchNormBlobs& blobs, const float* mean,
                   const float* variance) {
  for (int64_t c = 0; c < norm.channels; ++c) batch_norm::UpdateRunning(norm, blobs, c, mean[c], variance[c]);
  batch_norm::UpdateWeight(norm, blobs);
}

void ForwardCoefficients(const BatchNormScalars& norm, const BatchNormForward& arrays) {
  if (arrays.running) {
    const float factor = batch_norm::RunningFactor(*arrays.running);
    for (int64_t c = 0; c < norm.channels; ++c) {
      arrays.mean[c] = arrays.running->mean_sum[c] * factor;
      arrays.inverse_deviation[c] = arrays.running->variance_sum[c] * factor;
    }
  }
  for (int64_t c = 0; c < norm.channels; ++c) batch_norm::ForwardCoefficients(norm, arrays, c);
}

void BackwardCoefficients(const BatchNormScalars& norm, const BatchNormBackward& arrays) {
  for (int64_t c = 0; c < norm.channels; ++c) batch_norm::BackwardCoefficients(norm, arrays, c);
}

void FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) {
  const float factor = batch_norm::RunningFactor(arrays.running);
  const int64_t width = arrays.width;
  for (int64_t o = 0; o < norm.channels; ++o) {
    const float scale = batch_norm::FoldedScale(norm, arrays, factor, o);
    for (int64_t i = o * width; i < (o + 1) * width; ++i) arrays.folded_weights[i] = arrays.weights[i] * scale;
    arrays.folded_bias[o] = batch_norm::FoldedBias(arrays, factor, scale, o);
  }
}

}  // namespace crema
