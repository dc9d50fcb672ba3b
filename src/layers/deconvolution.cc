// Deconvolution with learned filters, the transpose of Convolution: blobs [channels, num_output / group, kernel...]
// and, with bias_term, [num_output]. With P the convolution that maps a top to a bottom, forward is the gradient of P's
// source, and backward runs P.
#include <algorithm>

#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "graph/filler.h"
#include "layers/convolution_window.h"
#include "layers/plan_kernel.h"
#include "ops/operations.h"

namespace crema {

namespace {

class DeconvolutionLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    ExpectEqualBottoms(setup);
    const ConvolutionParameter& param = setup.param().convolution_param();
    const ConvolutionWindow window = ReadConvolutionWindow(setup);
    const Shape& shape = setup.bottom_shape(0);
    problem_ = {};
    problem_.batch = shape.count(0, window.axis);
    problem_.outputs = shape[window.axis];
    const auto [channels, groups] = ReadChannels(setup, problem_.outputs);
    problem_.channels = channels;
    problem_.groups = groups;
    problem_.kernel = window.kernel;
    problem_.stride = window.stride;
    problem_.pad = window.pad;
    problem_.dilation = window.dilation;
    problem_.bias = false;
    bias_ = param.bias_term();
    for (size_t i = 0; i < window.input.size(); ++i) problem_.input.push_back(TopExtent(setup, window, i));

    std::vector<int64_t> top(shape.dims().begin(), shape.dims().begin() + window.axis);
    top.push_back(problem_.channels);
    top.insert(top.end(), problem_.input.begin(), problem_.input.end());
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, Shape(top));
    if (window.axis == 1) setup.SetCoordinateMap(window.coordinate_map(true));
    AddFilledParam(setup, "convolution_param.weight_filler", problem_.weights_shape(), param.weight_filler());
    if (bias_) AddFilledParam(setup, "convolution_param.bias_filler", {problem_.channels}, param.bias_filler());
    setup.SetFlops(problem_.flops() * setup.bottoms());
    bottoms_ = setup.bottoms();
    if (window.axis == 1 && problem_.axes() >= 1 && problem_.axes() <= 3) setup.PreferChannelsLast();
    if (window.axis > 0) setup.AllowSplitBatch();
    if (problem_.axes() == 0) {  // a product of matrices; the kernels want a pixel
      problem_.input = problem_.kernel = problem_.stride = problem_.dilation = {1};
      problem_.pad = {0};
    }
  }

  void Plan(LayerPlan& plan) override {
    problem_.layout = plan.bottom(0).layout;
    problem_.factors = plan.factors();
    const int64_t pixels = problem_.source_shape().count(2);
    extents_ = {problem_.batch, problem_.channels, pixels};
    if (problem_.layout == Layout::kChannelsLast) extents_ = {problem_.batch * pixels, problem_.channels, 1};
    ConvolutionProblem transpose = problem_, convolution = problem_;
    transpose.source_gradient = true;
    transpose_ = PlanKernel(plan, &Operations::MakeConvolution, transpose);
    bool any_bottom = false;
    for (int i = 0; i < bottoms_; ++i) any_bottom |= plan.bottom_grad(i);
    const bool weights = plan.param_grad(0), bias = bias_ && plan.param_grad(1);
    convolution.weights_gradient = weights;
    convolution_ = nullptr;
    if (any_bottom || weights) convolution_ = PlanGradientKernel(plan, &Operations::MakeConvolution, convolution);
    size_t scratch = 0;
    if (any_bottom) scratch = convolution_->forward_workspace();
    if (weights) scratch = std::max(scratch, convolution_->backward_workspace());
    for (int i = 0; weights && i < bottoms_; ++i) plan.BackwardReadsBottom(i);
    // Gradients of one bottom, to be added to those of the bottoms before.
    gradient_scratch_ = AlignedBytes(scratch);
    const int64_t floats = (weights ? problem_.weights_shape().count() : 0) + (bias ? problem_.channels : 0);
    plan.Workspace(transpose_->backward_workspace(),
                   gradient_scratch_ + (bottoms_ > 1 ? static_cast<size_t>(floats) * sizeof(float) : 0));
  }

  void Forward(const LayerRun& run) override {
    for (int i = 0; i < bottoms_; ++i) {
      float* top = run.tops[i].f32();
      transpose_->Backward(nullptr, run.params[0].f32(), run.bottoms[i].f32(), top, nullptr, nullptr, run.workspace);
      if (bias_) run.ops->AddBias(extents_, top, run.params[1].f32(), top);
    }
  }

  void Backward(const LayerRun& run) override {
    const Tensor &weights = run.param_grads[0], bias = bias_ ? run.param_grads[1] : Tensor();
    float* const scratch = reinterpret_cast<float*>(run.workspace + gradient_scratch_);
    for (int i = 0; i < bottoms_; ++i) {
      const float* gradient = run.top_grads[i].f32();
      if (run.bottom_grads[i].defined()) {
        convolution_->Forward(gradient, run.params[0].f32(), nullptr, run.bottom_grads[i].f32(), run.workspace);
      }
      if (weights.defined()) {
        float* part = i == 0 ? weights.f32() : scratch;
        convolution_->Backward(gradient, run.params[0].f32(), run.bottoms[i].f32(), nullptr, part, nullptr,
                               run.workspace);
        if (i > 0) run.ops->Axpy(weights.count(), 1, part, weights.f32());
      }
      if (bias.defined()) {
        float* part = i == 0 ? bias.f32() : scratch;
        run.ops->SumToBias(extents_, gradient, part);
        if (i > 0) run.ops->Axpy(bias.count(), 1, part, bias.f32());
      }
    }
  }

 private:
  static int64_t TopExtent(const LayerSetup& setup, const ConvolutionWindow& window, size_t i) {
    const int axis = static_cast<int>(i);
    const int64_t extent = window.stride[i] * (window.input[i] - 1) + window.reach(axis) - 2 * window.pad[i];
    if (window.input[i] < 1) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " is empty");
    }
    if (extent < 1) {
      const bool pads = setup.param().convolution_param().pad_size() > 0;
      setup.Fail(pads ? "convolution_param.pad" : "convolution_param.pad_h",
                 "pad " + std::to_string(window.pad[i]) + " takes away all of the " +
                     std::to_string(extent + 2 * window.pad[i]) + " outputs along spatial axis " +
                     std::to_string(axis) + "; a deconvolution drops pad elements on each side, so lower it");
    }
    return extent;
  }

  ConvolutionProblem problem_;  // of the convolution from a top to a bottom
  BiasExtents extents_;         // of a top
  bool bias_ = true;
  int bottoms_ = 0;
  std::unique_ptr<ConvolutionKernel> transpose_, convolution_;  // the second one is null where no gradient needs it
  size_t gradient_scratch_ = 0;                                 // where scratch for gradients begins in the workspace
};

}  // namespace

REGISTER_LAYER(Deconvolution, DeconvolutionLayer, "convolution_param");

}  // namespace crema
