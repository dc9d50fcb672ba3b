#include "layers/folded_normalization.h"

#include <cmath>

#include "layers/batch_norm_blobs.h"

namespace crema {

void FoldedNormalization::Setup(LayerSetup& setup, int64_t outputs, int first_param) {
  outputs_ = outputs;
  first_param_ = first_param;
  for (const LayerParameter* member : setup.members()) {
    if (member->type() == "BatchNorm") {
      present_ = true;
      eps_ = member->batch_norm_param().eps();
      AddBatchNormBlobs(setup, outputs);
    } else if (member->type() == "Scale") {
      has_scale_ = true;
      has_shift_ = member->scale_param().bias_term();
      AddScaleBlobs(setup, *member, outputs);
    }
  }
}

void FoldedNormalization::Fold(std::span<const Tensor> params, const float* weights, int64_t weights_count,
                               const float* bias) {
  const std::span<const Tensor> blobs = params.subspan(first_param_);
  const RunningStatistics running(blobs);
  const float* gain = has_scale_ ? blobs[kBatchNormBlobs].f32() : nullptr;
  const float* shift = has_shift_ ? blobs[kBatchNormBlobs + 1].f32() : nullptr;
  weights_.resize(weights_count);
  bias_.resize(outputs_);
  const int64_t width = weights_count / outputs_;
  for (int64_t o = 0; o < outputs_; ++o) {
    const float scale = (gain ? gain[o] : 1) / std::sqrt(running.variance(o) + eps_);
    for (int64_t i = o * width; i < (o + 1) * width; ++i) weights_[i] = weights[i] * scale;
    bias_[o] = ((bias ? bias[o] : 0) - running.mean(o)) * scale + (shift ? shift[o] : 0);
  }
}

}  // namespace crema
