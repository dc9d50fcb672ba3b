// The blobs of BatchNorm and of the Scale behind it, as Caffe's files hold them.
#ifndef CREMA_LAYERS_BATCH_NORM_BLOBS_H_
#define CREMA_LAYERS_BATCH_NORM_BLOBS_H_

#include <span>

#include "crema/layer.h"

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

// The running statistics; 0 before any training, as in Caffe.
class RunningStatistics {
 public:
  explicit RunningStatistics(std::span<const Tensor> blobs)
      : means_(blobs[kMeanSum].f32()), variances_(blobs[kVarianceSum].f32()) {
    const float weight = blobs[kWeightSum].f32()[0];
    factor_ = weight == 0 ? 0 : 1 / weight;
  }
  float mean(int64_t channel) const { return means_[channel] * factor_; }
  float variance(int64_t channel) const { return variances_[channel] * factor_; }

 private:
  const float *means_, *variances_;
  float factor_ = 0;
};

}  // namespace crema

#endif  // CREMA_LAYERS_BATCH_NORM_BLOBS_H_
