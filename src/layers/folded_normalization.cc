#include "layers/folded_normalization.h"

#include "layers/batch_norm_blobs.h"
#include "ops/operations.h"

namespace crema {

void FoldedNormalization::Setup(LayerSetup& setup, int64_t outputs, int first_param) {
  norm_.channels = outputs;
  first_param_ = first_param;
  for (const LayerParameter* member : setup.members()) {
    if (member->type() == "BatchNorm") {
      present_ = true;
      norm_.eps = member->batch_norm_param().eps();
      AddBatchNormBlobs(setup, outputs);
    } else if (member->type() == "Scale") {
      has_scale_ = true;
      has_shift_ = member->scale_param().bias_term();
      AddScaleBlobs(setup, *member, outputs);
    }
  }
}

void FoldedNormalization::Fold(const LayerRun& run, const float* weights, int64_t weights_count, const float* bias) {
  const std::span<const Tensor> blobs = run.params.subspan(first_param_);
  if (weights_.bytes() == 0) {
    weights_ = Buffer(*run.context->device, static_cast<size_t>(weights_count) * sizeof(float));
    bias_ = Buffer(*run.context->device, static_cast<size_t>(norm_.channels) * sizeof(float));
  }
  run.ops->FoldNormalization(norm_, {.running = Blobs(blobs),
                                     .width = weights_count / norm_.channels,
                                     .weights = weights,
                                     .bias = bias,
                                     .gain = has_scale_ ? blobs[kBatchNormBlobs].f32() : nullptr,
                                     .shift = has_shift_ ? blobs[kBatchNormBlobs + 1].f32() : nullptr,
                                     .folded_weights = reinterpret_cast<float*>(weights_.data()),
                                     .folded_bias = reinterpret_cast<float*>(bias_.data())});
}

}  // namespace crema
