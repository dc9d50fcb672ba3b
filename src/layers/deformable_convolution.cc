// DeformableConvolution and ModulatedDeformableConvolution: a convolution whose windows look where a bottom says (Dai
// et al., "Deformable Convolutional Networks", 2017; Zhu et al., "Deformable ConvNets v2", 2018). Blobs: Convolution's.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "device/device.h"
#include "graph/filler.h"
#include "layers/convolution_window.h"
#include "layers/plan_kernel.h"
#include "ops/operations.h"

namespace crema {

namespace {

class DeformableConvolutionLayer : public Layer {
 public:
  explicit DeformableConvolutionLayer(bool modulated = false) : modulated_(modulated) {}

  void Setup(LayerSetup& setup) override {
    if (!modulated_ && setup.bottoms() == 3) {
      setup.Fail("bottom",
                 "takes images and offsets; a third bottom, of factors, takes the type "
                 "ModulatedDeformableConvolution");
    }
    setup.ExpectBottoms(2, modulated_ ? 3 : 2);
    setup.ExpectTops(1);
    const std::string block = modulated_ ? "modulated_deformable_convolution_param" : "deformable_convolution_param";
    const DeformableConvolutionParameter& param = modulated_ ? setup.param().modulated_deformable_convolution_param()
                                                             : setup.param().deformable_convolution_param();
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() != 4 || shape.count(1) == 0) {
      setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(0));
    }
    const ConvolutionWindow window = ReadConvolutionWindow(setup, block, param);
    if (window.axis != 1) setup.Fail(block + ".axis", "the channels of images are axis 1");
    CheckReach(setup, window);
    images_ = shape[0];
    const auto [outputs, groups] = ReadChannels(setup, block, param, shape[1]);
    outputs_ = outputs;
    groups_ = groups;
    const auto axis = [&](int i) {
      const int64_t output = (window.input[i] + 2 * window.pad[i] - window.reach(i)) / window.stride[i] + 1;
      return Im2colProblem::Axis{window.input[i], window.kernel[i],   window.stride[i],
                                 window.pad[i],   window.dilation[i], output};
    };
    columns_ = {.channels = shape[1], .rows = axis(0), .columns = axis(1), .fades = modulated_};
    ReadDeformableGroups(setup, block, param);
    CheckSize(setup);
    ExpectNumbers(setup, 1, 2, "offsets");
    has_factors_ = setup.bottoms() == 3;
    if (has_factors_) ExpectNumbers(setup, 2, 1, "factors");
    setup.SetTop(0, {images_, outputs_, columns_.rows.output, columns_.columns.output});
    const Shape weights = {outputs_, shape[1] / groups_, columns_.rows.kernel, columns_.columns.kernel};
    AddFilledParam(setup, block + ".weight_filler", weights, param.weight_filler());
    bias_ = param.bias_term();
    if (bias_) AddFilledParam(setup, block + ".bias_filler", {outputs_}, param.bias_filler());
    setup.AllowSplitBatch();
    const auto windows = static_cast<double>(images_ * columns_.windows());
    setup.SetFlops(windows * (2.0 * static_cast<double>(weights.count()) +
                              8.0 * static_cast<double>(shape[1] * columns_.places())));
  }

  void Plan(LayerPlan& plan) override {
    Device& device = *plan.context().device;
    Operations& ops = OperationsOf(device);
    BatchedProductProblem product = {.batches = groups_,
                                     .m = outputs_ / groups_,
                                     .n = columns_.windows(),
                                     .k = columns_.channels / groups_ * columns_.places()};
    product.factors = plan.factors();
    forward_ = PlanKernel(plan, &Operations::MakeBatchedProduct, product);
    const bool for_places = plan.bottom_grad(1) || (has_factors_ && plan.bottom_grad(2));
    const auto gradient = [&](const BatchedProductProblem& problem) {
      return PlanGradientKernel(plan, &Operations::MakeBatchedProduct, problem);
    };
    weight_gradient_ = plan.param_grad(0) ? gradient(GradientOfA(product)) : nullptr;
    column_gradient_ = plan.bottom_grad(0) || for_places ? gradient(GradientOfB(product)) : nullptr;
    if (weight_gradient_ || for_places) plan.BackwardReadsBottom(0);
    if (weight_gradient_ || column_gradient_) {
      plan.BackwardReadsBottom(1);
      if (has_factors_) plan.BackwardReadsBottom(2);
    }
    size_t scratch = plan.bottom_grad(0) ? ops.DeformableCol2imWorkspace(columns_) : 0;
    for (const auto* kernel : {&weight_gradient_, &column_gradient_}) {
      if (*kernel) scratch = std::max(scratch, (*kernel)->workspace());
    }
    rest_ = AlignedBytesOf<float>(product.k * groups_ * product.n);
    weights_ = outputs_ * product.k;
    part_ = weight_gradient_ && images_ > 1 ? AlignedBytesOf<float>(weights_) : 0;
    plan.Workspace(rest_ + forward_->workspace(), weight_gradient_ || column_gradient_ ? rest_ + part_ + scratch : 0);
  }

  void Forward(const LayerRun& run) override {
    auto* const columns = reinterpret_cast<float*>(run.workspace);
    for (int64_t i = 0; i < images_; ++i) {
      MakeColumns(run, i, columns);
      forward_->Run(run.params[0].f32(), columns, Of(run.tops[0], i), run.workspace + rest_);
    }
    if (bias_) run.ops->AddBias(BiasOf(), run.tops[0].f32(), run.params[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    Operations& ops = *run.ops;
    if (bias_ && run.param_grads[1].defined()) {
      ops.SumToBias(BiasOf(), run.top_grads[0].f32(), run.param_grads[1].f32());
    }
    if (weight_gradient_ && images_ == 0) ops.Fill(0, run.param_grads[0]);
    auto* const columns = reinterpret_cast<float*>(run.workspace);
    auto* const part = reinterpret_cast<float*>(run.workspace + rest_);
    std::byte* const scratch = run.workspace + rest_ + part_;
    for (int64_t i = 0; i < images_; ++i) {
      const float* const gradient = Of(run.top_grads[0], i);
      if (weight_gradient_) {
        float* const sum = run.param_grads[0].f32();
        MakeColumns(run, i, columns);
        weight_gradient_->Run(gradient, columns, i == 0 ? sum : part, scratch);
        if (i > 0) ops.Axpy(weights_, 1, part, sum);
      }
      if (!column_gradient_) continue;
      column_gradient_->Run(run.params[0].f32(), gradient, columns, scratch);
      const float *const offsets = Of(run.bottoms[1], i), *const factors = FactorsOf(run, i);
      if (float* const image = GradientOf(run, 0, i)) {
        ops.DeformableCol2im(columns_, columns, offsets, factors, image, scratch);
      }
      float *const of_offsets = GradientOf(run, 1, i), *const of_factors =
                                                           has_factors_ ? GradientOf(run, 2, i) : nullptr;
      if (of_offsets || of_factors) {
        ops.DeformableOffsetGradient(columns_, columns, Of(run.bottoms[0], i), offsets, factors, of_offsets,
                                     of_factors);
      }
    }
  }

 private:
  void ReadDeformableGroups(const LayerSetup& setup, const std::string& block,
                            const DeformableConvolutionParameter& param) {
    columns_.groups = param.deformable_group();
    if (columns_.groups >= 1 && columns_.channels % columns_.groups == 0) return;
    setup.Fail(block + ".deformable_group", "deformable_group " + std::to_string(columns_.groups) +
                                                " does not divide the " + std::to_string(columns_.channels) +
                                                " channels of \"" + setup.param().bottom(0) + "\"");
  }

  // Pixels, and what a group's columns give to them, are counted by 32 bits.
  void CheckSize(const LayerSetup& setup) const {
    const auto padded = [](const Im2colProblem::Axis& axis) { return axis.input + 2 * axis.pad; };
    int64_t windows = 0, gifts = 0, columns = 0;
    const bool fits = std::max(padded(columns_.rows), padded(columns_.columns)) <= INT32_MAX &&
                      columns_.plane() < INT32_MAX &&
                      !__builtin_mul_overflow(columns_.rows.output, columns_.columns.output, &windows) &&
                      !__builtin_mul_overflow(columns_.places(), windows, &gifts) && gifts <= INT32_MAX / 4 &&
                      !__builtin_mul_overflow(columns_.channels * 4, gifts, &columns);
    if (fits) return;
    setup.Fail("bottom", "padded planes of 2^31 pixels, or 2^29 places of all windows, are not supported; " +
                             setup.BottomIs(0) + "; give it in parts, or lower pad or kernel_size");
  }

  void ExpectNumbers(const LayerSetup& setup, int bottom, int64_t numbers, const std::string& what) const {
    const int64_t channels = columns_.groups * columns_.places() * numbers;
    const Shape expected = {images_, channels, columns_.rows.output, columns_.columns.output};
    if (setup.bottom_shape(bottom) == expected) return;
    setup.Fail("bottom", "takes " + what + " of " + expected.ToString() + ", " + std::to_string(numbers) +
                             " for each of " + std::to_string(columns_.groups) + " deformable group(s) and each of " +
                             std::to_string(columns_.places()) +
                             " places of the window, at each pixel of the top, but " + setup.BottomIs(bottom));
  }

  void MakeColumns(const LayerRun& run, int64_t image, float* columns) const {
    run.ops->DeformableIm2col(columns_, Of(run.bottoms[0], image), Of(run.bottoms[1], image), FactorsOf(run, image),
                              columns);
  }

  float* Of(const Tensor& tensor, int64_t image) const { return tensor.f32() + image * (tensor.count() / images_); }
  const float* FactorsOf(const LayerRun& run, int64_t image) const {
    return has_factors_ ? Of(run.bottoms[2], image) : nullptr;
  }
  float* GradientOf(const LayerRun& run, int bottom, int64_t image) const {
    return run.bottom_grads[bottom].defined() ? Of(run.bottom_grads[bottom], image) : nullptr;
  }
  BiasExtents BiasOf() const { return {images_, outputs_, columns_.windows()}; }

  const bool modulated_;
  int64_t images_ = 0, outputs_ = 0, groups_ = 1;
  bool bias_ = true, has_factors_ = false;
  DeformableIm2colProblem columns_;  // of one image
  std::unique_ptr<BatchedProductKernel> forward_, weight_gradient_, column_gradient_;
  int64_t weights_ = 0;         // their number
  size_t rest_ = 0, part_ = 0;  // in the workspace: what lies behind the columns; bytes of one image's weight gradient
};

class ModulatedDeformableConvolutionLayer : public DeformableConvolutionLayer {
 public:
  ModulatedDeformableConvolutionLayer() : DeformableConvolutionLayer(true) {}
};

}  // namespace

REGISTER_LAYER(DeformableConvolution, DeformableConvolutionLayer, "deformable_convolution_param");
REGISTER_LAYER(ModulatedDeformableConvolution, ModulatedDeformableConvolutionLayer,
               "modulated_deformable_convolution_param");

}  // namespace crema
