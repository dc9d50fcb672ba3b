#include "ops/normalization/batch_norm.h"

#include "ops/normalization/batch_norm_formulas.h"

namespace crema {

void BatchNormFromBatch(const ChannelGrid& grid, const void* x, const BatchNormScalars& norm,
                        const BatchNormForward& arrays, std::byte* workspace) {
  float *mean = arrays.mean, *variance = arrays.inverse_deviation;
  ChannelMoments(grid, x, mean, variance, workspace);
  if (arrays.running.mean_sum) {
    for (int64_t c = 0; c < norm.channels; ++c) {
      batch_norm::UpdateRunning(norm, arrays.running, c, mean[c], variance[c]);
    }
    batch_norm::UpdateWeight(norm, arrays.running);
  }
  for (int64_t c = 0; c < norm.channels; ++c) batch_norm::ForwardCoefficients(norm, arrays, c, mean[c], variance[c]);
}

void BatchNormFromRunning(const BatchNormScalars& norm, const BatchNormForward& arrays) {
  const float factor = batch_norm::RunningFactor(arrays.running);
  for (int64_t c = 0; c < norm.channels; ++c) batch_norm::CoefficientsFromRunning(norm, arrays, factor, c);
}

void BatchNormGradients(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const BatchNormScalars& norm,
                        const BatchNormBackward& arrays, std::byte* workspace) {
  if (arrays.sum) ChannelGradientSums(grid, g, x, arrays.mean, arrays.sum, arrays.product, workspace);
  for (int64_t c = 0; c < norm.channels; ++c) {
    batch_norm::BackwardCoefficients(norm, arrays, c, arrays.sum ? arrays.sum[c] : 0,
                                     arrays.product ? arrays.product[c] : 0);
  }
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
