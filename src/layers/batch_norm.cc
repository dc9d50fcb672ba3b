// BatchNorm: y = (x - mean) / sqrt(variance + eps) by channel (Ioffe and Szegedy, "Batch normalization", 2015), with
// the batch's statistics in training and the running ones otherwise. Blobs as in Caffe's files: sums of means and of
// variances, each decayed by moving_average_fraction a pass, and the sum of weights to divide both by. With scale_bias,
// of NVIDIA's fork, as BatchNorm and Scale in one.
// BN: BatchNorm and Scale in one, as in PSPNet. Blobs as in its files: slope, bias, running mean and running variance.
// SegNet's has the first two alone, and normalises with the batch's statistics or not at all.
// Fused with what usually follows: Scale, a sum with a shortcut (Eltwise), ReLU.
#include <string>

#include "base/aligned_memory.h"
#include "crema/fusion.h"
#include "layers/batch_norm_blobs.h"
#include "layers/channel_shape.h"
#include "layers/field_range.h"
#include "layers/fusable.h"
#include "ops/operations.h"

namespace crema {

namespace {

// Arrays of a number for each channel lie one behind the other, each aligned as tensors are.
int64_t Padded(int64_t channels) { return static_cast<int64_t>(AlignedBytesOf<float>(channels) / sizeof(float)); }

// In one tensor kept for backward, or in scratch.
struct Saved {
  Saved(float* base, int64_t channels) : mean(base), inverse_deviation(base + Padded(channels)) {}
  float *mean, *inverse_deviation;
};

class BatchNormLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    const int members = static_cast<int>(setup.members().size());
    for (const LayerParameter* member : setup.members()) {
      has_addend_ |= member->type() == "Eltwise";
      relu_ |= member->type() == "ReLU";
    }
    setup.ExpectBottoms(has_addend_ ? 2 : 1);
    if (members == 1) setup.ExpectTops(1);
    const Shape& shape = setup.bottom_shape(0);
    grid_ = GridOf(setup.bottom(0));
    norm_.channels = grid_.channels;
    norm_.per_channel = grid_.per_channel();
    if (grid_.per_channel() < 1) setup.Fail("bottom", "there is nothing to normalise in " + shape.ToString());
    if (setup.members().front()->type() == "BN") {
      SetupBn(setup);
    } else {
      SetupBatchNorm(setup);
    }
    setup.SetTop(0, shape);
    setup.AllowInPlace();
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    if (use_running_) setup.AllowSplitBatch();
    setup.SetFlops(4.0 * static_cast<double>(shape.count()));
  }

  void Plan(LayerPlan& plan) override {
    grid_ = GridOf(plan.bottom(0));
    addend_grad_ = has_addend_ && plan.bottom_grad(1);
    // Under a ReLU the gradient is masked once, into that of the addend, and read from there.
    if (addend_grad_ && !relu_) plan.PassGradient(1);
    const bool product = !use_running_ || (gain_ >= 0 && plan.param_grad(gain_));
    if (plan.backward() && (product || plan.bottom_grad(0))) {
      plan.Save({Shape{2 * Padded(grid_.channels)}, DType::kF32});
      if (product) plan.BackwardReadsBottom(0);
    }
    if (plan.backward() && relu_) plan.BackwardReadsTop(0);
    // Two sums and three coefficients, each by channel, are the most; behind them BN's constants.
    coefficient_bytes_ = static_cast<size_t>(7 * Padded(grid_.channels)) * sizeof(float);
    const size_t bytes = coefficient_bytes_ + OperationsOf(*plan.context().device).ChannelWorkspace(grid_);
    plan.Workspace(bytes, bytes);
    plan.Chose(use_running_ ? "affine" : "moments, affine");
  }

  void Forward(const LayerRun& run) override {
    float* scale = reinterpret_cast<float*>(run.workspace);
    std::byte* scratch = run.workspace + coefficient_bytes_;
    // Without a backward pass nothing is saved; the coefficients' place serves.
    const Saved saved(run.saved.empty() ? scale + Padded(grid_.channels) : run.saved[0].f32(), grid_.channels);
    const BatchNormForward arrays = {
        .running = use_running_ || (gathers_ && !run.replay) ? Running(run) : BatchNormBlobs(),
        .gain = Gain(run),
        .mean = saved.mean,
        .inverse_deviation = saved.inverse_deviation,
        .scale = scale};
    if (use_running_) {
      run.ops->BatchNormFromRunning(norm_, arrays);
    } else {
      run.ops->BatchNormFromBatch(grid_, run.bottoms[0].raw(), norm_, arrays, scratch);
    }
    run.ops->ChannelAffine(grid_,
                           {.x = run.bottoms[0].raw(),
                            .mean = saved.mean,
                            .scale = scale,
                            .shift = shift_ >= 0 ? run.params[shift_].f32() : nullptr,
                            .addend = has_addend_ ? run.bottoms[1].raw() : nullptr,
                            .relu = relu_,
                            .y = run.tops[0].raw()},
                           scratch);
  }

  void Backward(const LayerRun& run) override {
    const int64_t channels = grid_.channels;
    float* coefficients = reinterpret_cast<float*>(run.workspace);
    float *sum = coefficients, *product = sum + channels, *a = product + channels, *b = a + channels, *c = b + channels;
    std::byte* scratch = run.workspace + coefficient_bytes_;
    ChannelGradient g{run.top_grads[0].raw(), relu_ ? run.tops[0].raw() : nullptr};
    void* masked = addend_grad_ && relu_ ? run.bottom_grads[1].raw() : nullptr;
    void* dx = run.bottom_grads[0].raw();
    float* gain_grad = gain_ >= 0 ? run.param_grads[gain_].f32() : nullptr;
    float* shift_grad = shift_ >= 0 ? run.param_grads[shift_].f32() : nullptr;
    if (run.saved.empty()) {
      if (shift_grad) run.ops->ChannelGradientSums(grid_, g, nullptr, nullptr, shift_grad, nullptr, scratch);
      if (masked) run.ops->ChannelGradientMap(grid_, {.g = g, .masked = masked}, scratch);
      return;
    }
    const Saved saved(run.saved[0].f32(), channels);
    const void* x = run.bottoms[0].raw();
    const bool wants_product = gain_grad || !use_running_;
    run.ops->BatchNormGradients(grid_, g, x, norm_,
                                {.mean = saved.mean,
                                 .inverse_deviation = saved.inverse_deviation,
                                 .gain = Gain(run),
                                 .sum = wants_product || shift_grad ? sum : nullptr,
                                 .product = wants_product ? product : nullptr,
                                 .gain_gradient = gain_grad,
                                 .shift_gradient = shift_grad,
                                 .a = a,
                                 .b = use_running_ ? nullptr : b,
                                 .c = use_running_ ? nullptr : c},
                                scratch);
    if (!dx && !masked) return;
    run.ops->ChannelGradientMap(grid_,
                                {.g = g,
                                 .x = x,
                                 .mean = saved.mean,
                                 .a = a,
                                 .b = use_running_ ? nullptr : b,
                                 .c = c,
                                 .dx = dx,
                                 .masked = masked},
                                scratch);
  }

 private:
  void SetupBatchNorm(LayerSetup& setup) {
    const BatchNormParameter& param = setup.param().batch_norm_param();
    use_running_ = !NormalizesByBatch(param, setup.phase());
    norm_.fraction = param.moving_average_fraction();
    norm_.eps = param.eps();
    if (ScalesItself(param)) norm_.running = RunningStatistics::kUnitWeight;
    CheckScalars(setup, "batch_norm_param", "moving_average_fraction");
    AddBatchNormBlobs(setup, param, grid_.channels);
    if (ScalesItself(param)) {
      gain_ = kNormScale;
      shift_ = kNormBias;
    }
    for (const LayerParameter* member : setup.members()) {
      if (member->type() != "Scale") continue;
      AddScaleBlobs(setup, *member, grid_.channels);
      gain_ = kBatchNormBlobs;
      if (member->scale_param().bias_term()) shift_ = kBatchNormBlobs + 1;
    }
  }

  void SetupBn(LayerSetup& setup) {
    const BNParameter& param = setup.param().bn_param();
    is_bn_ = true;
    use_running_ = BnUsesRunning(param, setup.phase());
    norm_.running = RunningStatistics::kAverages;
    norm_.fraction = param.momentum();
    norm_.eps = BnEps(param);
    CheckScalars(setup, "bn_param", "momentum");
    gain_ = kBnSlope;
    shift_ = kBnBias;
    gathers_ = !IsBnOfSegNet(param);
    AddBnBlobs(setup, param, grid_.channels);
  }

  // `fraction`: the field's name.
  void CheckScalars(const LayerSetup& setup, const std::string& message, const std::string& fraction) const {
    ReadInRange(setup, message + ".eps", norm_.eps, kNotNegative, "it is added to the variance");
    ReadInRange(setup, message + "." + fraction, norm_.fraction, kFraction, "it is a share of the old running values");
  }

  BatchNormBlobs Running(const LayerRun& run) const {
    if (!is_bn_) return Blobs(run.params);
    const TensorSpec channels{Shape{grid_.channels}};
    float* zeros = reinterpret_cast<float*>(run.workspace) + 5 * Padded(grid_.channels);
    float* ones = zeros + Padded(grid_.channels);
    if (use_running_) run.ops->Fill(1, Tensor(ones, channels));
    if (use_running_ && !gathers_) run.ops->Fill(0, Tensor(zeros, channels));
    return BnBlobs(run.params, {zeros, ones});
  }

  const float* Gain(const LayerRun& run) const { return gain_ >= 0 ? run.params[gain_].f32() : nullptr; }

  ChannelGrid grid_;
  bool is_bn_ = false, use_running_ = false;
  bool gathers_ = true;  // running statistics
  BatchNormScalars norm_;
  int gain_ = -1, shift_ = -1;  // which blobs; -1: there is none
  bool has_addend_ = false, relu_ = false, addend_grad_ = false;
  size_t coefficient_bytes_ = 0;
};

}  // namespace

REGISTER_LAYER(BatchNorm, BatchNormLayer, "batch_norm_param");
REGISTER_LAYER(BN, BatchNormLayer, "bn_param");
REGISTER_FUSION(BatchNormScaleSumRelu, BatchNormLayer, .types = {"BatchNorm", "Scale", "Eltwise", "ReLU"},
                .accepts = FollowersAreFusable);
REGISTER_FUSION(BatchNormScaleSum, BatchNormLayer, .types = {"BatchNorm", "Scale", "Eltwise"},
                .accepts = FollowersAreFusable);
REGISTER_FUSION(BatchNormScaleRelu, BatchNormLayer, .types = {"BatchNorm", "Scale", "ReLU"},
                .accepts = FollowersAreFusable);
REGISTER_FUSION(BatchNormScale, BatchNormLayer, .types = {"BatchNorm", "Scale"}, .accepts = FollowersAreFusable);
REGISTER_FUSION(BatchNormSumRelu, BatchNormLayer, .types = {"BatchNorm", "Eltwise", "ReLU"},
                .accepts = FollowersAreFusable);
REGISTER_FUSION(BatchNormSum, BatchNormLayer, .types = {"BatchNorm", "Eltwise"}, .accepts = FollowersAreFusable);
REGISTER_FUSION(BatchNormRelu, BatchNormLayer, .types = {"BatchNorm", "ReLU"}, .accepts = FollowersAreFusable);
REGISTER_FUSION(BnSumRelu, BatchNormLayer, .types = {"BN", "Eltwise", "ReLU"}, .accepts = FollowersAreFusable);
REGISTER_FUSION(BnSum, BatchNormLayer, .types = {"BN", "Eltwise"}, .accepts = FollowersAreFusable);
REGISTER_FUSION(BnRelu, BatchNormLayer, .types = {"BN", "ReLU"}, .accepts = FollowersAreFusable);

}  // namespace crema
