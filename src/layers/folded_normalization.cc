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
      AddBatchNormBlobs(setup, member->batch_norm_param(), outputs);
      if (!ScalesItself(member->batch_norm_param())) continue;
      gain_ = kNormScale;
      shift_ = kNormBias;
    } else if (member->type() == "BN") {
      present_ = is_bn_ = true;
      norm_.eps = BnEps(member->bn_param());
      gain_ = kBnSlope;
      shift_ = kBnBias;
      AddBnBlobs(setup, member->bn_param(), outputs);
    } else if (member->type() == "Scale") {
      gain_ = kBatchNormBlobs;
      if (member->scale_param().bias_term()) shift_ = kBatchNormBlobs + 1;
      AddScaleBlobs(setup, *member, outputs);
    }
  }
}

void FoldedNormalization::Fold(const LayerRun& run, const float* weights, int64_t weights_count, const float* bias) {
  const std::span<const Tensor> blobs = run.params.subspan(first_param_);
  if (weights_.bytes() == 0) {
    weights_ = Buffer(*run.context->device, static_cast<size_t>(weights_count) * sizeof(float));
    bias_ = Buffer(*run.context->device, static_cast<size_t>(norm_.channels) * sizeof(float));
    zeros_ = Buffer(*run.context->device, bias_.bytes());
    ones_ = Buffer(*run.context->device, bias_.bytes());
    run.ops->Fill(0, Tensor(zeros_.data(), {Shape{norm_.channels}}));
    run.ops->Fill(1, Tensor(ones_.data(), {Shape{norm_.channels}}));
  }
  const BnConstants constants = {reinterpret_cast<float*>(zeros_.data()), reinterpret_cast<float*>(ones_.data())};
  run.ops->FoldNormalization(norm_, {.running = is_bn_ ? BnBlobs(blobs, constants) : Blobs(blobs),
                                     .width = weights_count / norm_.channels,
                                     .weights = weights,
                                     .bias = bias,
                                     .gain = gain_ >= 0 ? blobs[gain_].f32() : nullptr,
                                     .shift = shift_ >= 0 ? blobs[shift_].f32() : nullptr,
                                     .folded_weights = reinterpret_cast<float*>(weights_.data()),
                                     .folded_bias = reinterpret_cast<float*>(bias_.data())});
}

}  // namespace crema
