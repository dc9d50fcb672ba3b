// The blobs of BatchNorm and of the Scale behind it, as Caffe's files hold them.
#ifndef CREMA_LAYERS_BATCH_NORM_BLOBS_H_
#define CREMA_LAYERS_BATCH_NORM_BLOBS_H_

#include <span>

#include "crema/layer.h"
#include "ops/batch_norm.h"

namespace crema {

// Sums of means and of variances, each decayed a pass, and the sum of weights to divide both by.
inline constexpr int kMeanSum = 0, kVarianceSum = 1, kWeightSum = 2, kBatchNormBlobs = 3;

inline void AddBatchNormBlobs(LayerSetup& setup, int64_t channels) {
  setup.AddParam({Shape{channels}, {}, false});
  setup.AddParam({Shape{channels}, {}, false});
  setup.AddParam({Shape{1}, {}, false});
}

// Those of a Scale that multiplies by channel.
inline void AddScaleBlobs(LayerSetup& setup, const LayerParameter& scale, int64_t channels) {
  setup.AddParam({Shape{channels}, scale.scale_param().filler()});
  if (scale.scale_param().bias_term()) setup.AddParam({Shape{channels}, scale.scale_param().bias_filler()});
}

inline BatchNormBlobs Blobs(std::span<const Tensor> params) {
  return {params[kMeanSum].f32(), params[kVarianceSum].f32(), params[kWeightSum].f32()};
}

}  // namespace crema

#endif  // CREMA_LAYERS_BATCH_NORM_BLOBS_H_
