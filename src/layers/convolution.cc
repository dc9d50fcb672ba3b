// Convolution with learned filters: blobs [num_output, channels / group, kernel...] and, with bias_term, [num_output].
// convolution_param.engine and force_nd_im2col chose between Caffe's own kernels and have no effect here.
#include <algorithm>

#include "base/aligned_memory.h"
#include "crema/fusion.h"
#include "graph/filler.h"
#include "layers/batch_norm_blobs.h"
#include "layers/convolution_window.h"
#include "layers/elementwise_chain.h"
#include "layers/folded_normalization.h"
#include "layers/fusable.h"
#include "layers/plan_kernel.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ConvolutionLayer : public Layer {
 public:
  explicit ConvolutionLayer(bool depthwise = false) : depthwise_(depthwise) {}

  void Setup(LayerSetup& setup) override {
    problem_ = {};
    // Of a sum that is done on the way, the addend is bottom 0.
    for (const LayerParameter* member : setup.members()) problem_.sum |= member->type() == "Eltwise";
    image_ = problem_.sum ? 1 : 0;
    if (!problem_.sum) ExpectEqualBottoms(setup);
    const ConvolutionParameter& param = setup.param().convolution_param();
    const ConvolutionWindow window = ReadConvolutionWindow(setup, image_);
    const Shape& shape = setup.bottom_shape(image_);
    problem_.batch = shape.count(0, window.axis);
    problem_.channels = shape[window.axis];
    const auto [outputs, groups] = ReadChannels(setup, problem_.channels, depthwise_);
    problem_.outputs = outputs;
    problem_.groups = groups;
    problem_.input = window.input;
    problem_.kernel = window.kernel;
    problem_.stride = window.stride;
    problem_.pad = window.pad;
    problem_.dilation = window.dilation;
    problem_.bias = param.bias_term();
    problem_.activation = ReadActivation(*setup.members().back());
    CheckReach(setup, window);

    std::vector<int64_t> top(shape.dims().begin(), shape.dims().begin() + window.axis);
    top.push_back(problem_.outputs);
    for (int i = 0; i < problem_.axes(); ++i) top.push_back(problem_.output(i));
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, Shape(top));
    if (window.axis == 1) setup.SetCoordinateMap(window.coordinate_map());
    AddFilledParam(setup, "convolution_param.weight_filler", problem_.weights_shape(), param.weight_filler());
    if (problem_.bias) {
      AddFilledParam(setup, "convolution_param.bias_filler", {problem_.outputs}, param.bias_filler());
    }
    normalization_.Setup(setup, problem_.outputs, problem_.bias ? 2 : 1);
    bottoms_ = setup.bottoms() - image_;
    setup.SetFlops(problem_.flops() * bottoms_);
    if (problem_.sum) setup.AllowInPlace();
    if (window.axis > 0) setup.AllowSplitBatch();
    if (window.axis == 1 && problem_.axes() >= 1 && problem_.axes() <= 3) {
      setup.PreferChannelsLast();
      setup.AllowHalfPrecision();
    }
    if (problem_.axes() == 0) {  // a product of matrices; the kernels want a pixel
      problem_.input = problem_.kernel = problem_.stride = problem_.dilation = {1};
      problem_.pad = {0};
    }
  }

  void Plan(LayerPlan& plan) override {
    kernels_.clear();
    size_t forward = 0;
    gradient_scratch_ = 0;
    problem_.layout = plan.bottom(image_).layout;
    problem_.dtype = plan.bottom(image_).dtype;
    problem_.factors = plan.factors();
    problem_.prepared = !plan.trains();
    has_bias_ = problem_.bias;
    problem_.bias |= normalization_.present();
    problem_.weights_gradient = plan.param_grad(0);
    problem_.bias_gradient = has_bias_ && plan.param_grad(1);
    problem_.lay_out_weights = bottoms_ == 1 && plan.may_lay_out(0);
    given_layout_ = plan.TakeParameterLayout(0);
    for (int i = 0; i < bottoms_; ++i) {
      problem_.source_gradient = plan.bottom_grad(i);
      kernels_.push_back(PlanKernel(plan, &Operations::MakeConvolution, problem_));
      if (problem_.weights_gradient) plan.BackwardReadsBottom(i);
      forward = std::max(forward, AlignedBytes(kernels_.back()->forward_workspace()));
      gradient_scratch_ = std::max(gradient_scratch_, AlignedBytes(kernels_.back()->backward_workspace()));
    }
    if (const auto layout = kernels_[0]->weights_layout()) plan.KeepParameterAs(0, layout);
    plain_weights_ = forward;
    if (given_layout_) {
      plain_weights_ = std::max(forward, gradient_scratch_);
      gradient_scratch_ = forward = plain_weights_ + weights_bytes();
    }
    // Gradients of one bottom, to be added to those of the bottoms before.
    const size_t part = weights_bytes() + static_cast<size_t>(problem_.outputs) * sizeof(float);
    if (problem_.activation.present() && plan.backward()) {
      plan.BackwardReadsTop(0);
      plan.OverwriteTopGradient();
    }
    plan.Workspace(forward, gradient_scratch_ + (bottoms_ > 1 ? part : 0));
  }

  void Forward(const LayerRun& run) override {
    if (problem_.sum && run.bottoms[0].raw() != run.tops[0].raw()) {
      run.ops->Activate({}, run.bottoms[0], run.tops[0]);
    }
    for (int i = 0; i < bottoms_; ++i) {
      const float* weights = nullptr;
      if (!problem_.prepared) {
        weights = Weights(run);
      } else if (!shares_weights_ && prepared_version_ != run.parameters_version) {
        Prepare(run, *kernels_[i]);
      }
      kernels_[i]->Forward(run.bottoms[i + image_].raw(), weights, has_bias_ ? run.params[1].f32() : nullptr,
                           run.tops[i].raw(), run.workspace);
    }
    prepared_version_ = run.parameters_version;
  }

  void ShareWeights(Layer& first) override {
    shares_weights_ = true;
    auto& kernels = static_cast<ConvolutionLayer&>(first).kernels_;
    for (size_t i = 0; i < kernels_.size(); ++i) kernels_[i]->SharePrepared(*kernels[i]);
  }

  void Backward(const LayerRun& run) override {
    float* weights_total = problem_.weights_gradient ? run.param_grads[0].f32() : nullptr;
    float* bias_total = problem_.bias_gradient ? run.param_grads[1].f32() : nullptr;
    const int64_t weights = problem_.weights_shape().count();
    const float* values = Weights(run);
    if (problem_.activation.present()) {
      run.ops->ActivationGradient(problem_.activation, run.tops[0], run.top_grads[0], run.top_grads[0]);
    }
    for (int i = 0; i < bottoms_; ++i) {
      float *of_weights = weights_total, *of_bias = bias_total;
      if (i > 0) {
        std::byte* const part = run.workspace + gradient_scratch_;
        of_weights = reinterpret_cast<float*>(part);
        of_bias = reinterpret_cast<float*>(part + weights_bytes());
      }
      kernels_[i]->Backward(run.bottoms[i].raw(), values, run.top_grads[i].raw(), run.bottom_grads[i].raw(), of_weights,
                            of_bias, run.workspace);
      if (i == 0) continue;
      if (weights_total) run.ops->Axpy(weights, 1, of_weights, weights_total);
      if (bias_total) run.ops->Axpy(problem_.outputs, 1, of_bias, bias_total);
    }
  }

 private:
  // That plain weights or their gradient take in the workspace.
  size_t weights_bytes() const { return AlignedBytesOf<float>(problem_.weights_shape().count()); }
  // As the kernels take them: as they lie, unless another net keeps them in a form of its own.
  const float* Weights(const LayerRun& run) const {
    if (!given_layout_) return run.params[0].f32();
    float* plain = reinterpret_cast<float*>(run.workspace + plain_weights_);
    given_layout_->ToPlain(run.params[0].f32(), plain);
    return plain;
  }

  void Prepare(const LayerRun& run, ConvolutionKernel& kernel) {
    const float *weights = Weights(run), *bias = has_bias_ ? run.params[1].f32() : nullptr;
    if (!normalization_.present()) return kernel.Prepare(weights, bias);
    normalization_.Fold(run, weights, problem_.weights_shape().count(), bias);
    kernel.Prepare(normalization_.weights(), normalization_.bias());
  }

  const bool depthwise_;  // group and num_output are the number of channels where the file does not say
  ConvolutionProblem problem_;
  FoldedNormalization normalization_;
  bool has_bias_ = false;                                    // a blob of the layer's own
  uint64_t prepared_version_ = 0;                            // of the parameters that the kernels hold
  bool shares_weights_ = false;                              // which another layer prepares
  int bottoms_ = 0;                                          // images
  int image_ = 0;                                            // the first of them
  std::vector<std::unique_ptr<ConvolutionKernel>> kernels_;  // one for each bottom
  size_t gradient_scratch_ = 0;                              // where the scratch for gradients begins in the workspace
  std::shared_ptr<const ParameterLayout> given_layout_;      // of weights that another net keeps so; null: plain
  size_t plain_weights_ = 0;                                 // where these begin in the workspace
};

bool AcceptsForward(std::span<const LayerSetup* const> members, std::string* why_not) {
  if (members[0]->bottoms() != 1) *why_not = "several bottoms";
  for (const LayerSetup* setup : members) {
    const std::string& type = setup->param().type();
    const bool uses_batch = NormalizesByBatch(setup->param().batch_norm_param(), setup->phase());
    const bool bn_uses_batch = !BnUsesRunning(setup->param().bn_param(), setup->phase());
    if ((type == "BatchNorm" && uses_batch) || (type == "BN" && bn_uses_batch))
      *why_not = "the batch's own statistics are wanted";
    if (type == "Eltwise" && !IsSumOfTwo(*setup)) *why_not = "Eltwise is not a plain sum of two";
    if (type == "Scale" && !IsScaleByChannel(*setup)) *why_not = "Scale is not one number a channel";
  }
  if (ScalesTwice(members)) *why_not = "BatchNorm has a scale of its own";
  return why_not->empty();
}

bool AcceptsTraining(std::span<const LayerSetup* const> members, std::string* why_not) {
  if (!ReadActivation(members.back()->param()).gradient_reads_output()) {
    *why_not = "the gradient of " + members.back()->param().type() + " needs its bottom";
  }
  return AcceptsForward(members, why_not);
}

class DepthwiseConvolutionLayer : public ConvolutionLayer {
 public:
  DepthwiseConvolutionLayer() : ConvolutionLayer(true) {}
};

}  // namespace

REGISTER_LAYER(Convolution, ConvolutionLayer, "convolution_param");
// Two names that forks of Caffe have for it.
REGISTER_LAYER(DepthwiseConvolution, DepthwiseConvolutionLayer, "convolution_param");
REGISTER_LAYER(ConvolutionDepthwise, DepthwiseConvolutionLayer, "convolution_param");

namespace {

template <typename ConvolutionClass>
std::vector<FusionRegistrar> RegisterFusions(const std::string& types) {
  const std::string activations = CREMA_OUTPUT_ACTIVATIONS "|" CREMA_INPUT_ACTIVATIONS;
  Fusion fusion{.types = {types, CREMA_OUTPUT_ACTIVATIONS},
                .accepts = AcceptsTraining,
                .create = []() -> std::unique_ptr<Layer> { return std::make_unique<ConvolutionClass>(); }};
  std::vector<FusionRegistrar> registrars{FusionRegistrar(fusion)};
  fusion.inference_only = true;
  fusion.accepts = AcceptsForward;
  const std::vector<std::vector<std::string>> normalisations = {{}, {"BatchNorm"}, {"BatchNorm", "Scale"}, {"BN"}};
  for (const auto& normalisation : normalisations) {
    for (const bool sum : {false, true}) {
      fusion.types = {types};
      fusion.types.insert(fusion.types.end(), normalisation.begin(), normalisation.end());
      if (sum) fusion.types.push_back("Eltwise");
      fusion.onto_addend = sum;
      if (fusion.types.size() > 1) registrars.emplace_back(fusion);
      fusion.types.push_back(activations);
      registrars.emplace_back(fusion);
    }
  }
  return registrars;
}

const auto fusions = RegisterFusions<ConvolutionLayer>("Convolution");
const auto depthwise_fusions = RegisterFusions<DepthwiseConvolutionLayer>("DepthwiseConvolution|ConvolutionDepthwise");

}  // namespace

}  // namespace crema
