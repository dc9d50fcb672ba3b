// Local: a convolution with weights of its own at every place (Taigman et al., "DeepFace: Closing the Gap to
// Human-Level Performance in Face Verification", 2014; the layer of forks of Caffe). Blobs: [num_output, 1, K, N] and,
// with bias_term, [1, 1, num_output, N], of the K elements of a window and its N places.
//
// At each place the windows of some images, a matrix, are multiplied with the place's weights, another one. So what
// lies place by place in blobs is turned: N becomes the outermost axis.
#include <algorithm>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "device/device.h"
#include "graph/filler.h"
#include "layers/axis_settings.h"
#include "layers/plan_kernel.h"
#include "ops/operations.h"

namespace crema {

namespace {

constexpr int64_t kLeastColumns = int64_t{1} << 18;  // floats of windows worth multiplying at once

// A matrix of floats and the same transposed.
class TurnedMatrix {
 public:
  TurnedMatrix() = default;
  TurnedMatrix(int64_t rows, int64_t columns)
      : turn_(std::vector{rows, columns}, std::vector{1, 0}),
        turn_back_(std::vector{columns, rows}, std::vector{1, 0}),
        plain_(nullptr, {Shape{rows, columns}}),
        turned_(nullptr, {Shape{columns, rows}}) {}

  size_t bytes() const { return AlignedBytesOf<float>(plain_.count()); }
  int64_t count() const { return plain_.count(); }

  void Turn(Operations& ops, const float* plain, float* turned) {
    Run(ops, turn_, const_cast<float*>(plain), &plain_, turned, &turned_);
  }
  void TurnBack(Operations& ops, const float* turned, float* plain) {
    Run(ops, turn_back_, const_cast<float*>(turned), &turned_, plain, &plain_);
  }

 private:
  static void Run(Operations& ops, const AxisPermutation& permutation, float* source, Tensor* from, float* result,
                  Tensor* to) {
    from->MoveTo(source);
    to->MoveTo(result);
    ops.PermuteAxes(permutation, *from, *to);
  }

  AxisPermutation turn_, turn_back_;
  Tensor plain_, turned_;
};

class LocalLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const LocalParameter& param = setup.param().local_param();
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() < 3 || shape[1] < 1) {
      setup.Fail("bottom", "takes num x channels and one or more axes behind them, but " + setup.BottomIs(0));
    }
    outputs_ = param.num_output();
    if (outputs_ < 1) {
      setup.Fail(param.has_num_output() ? "local_param.num_output" : "local_param",
                 "num_output must be at least 1; it is the number of filters at each place");
    }
    images_ = shape[0];
    ReadWindow(setup, param, shape);
    std::vector<int64_t> top = {images_, outputs_};
    for (int i = 0; i < columns_.axes; ++i) top.push_back(columns_.axis[i].output);
    const Shape weights = ShapeOf(setup, {outputs_, 1, elements_, places_});
    setup.SetTop(0, Shape(std::move(top)));
    AddFilledParam(setup, "local_param.weight_filler", weights, param.weight_filler());
    bias_ = param.bias_term();
    if (bias_) AddFilledParam(setup, "local_param.bias_filler", {1, 1, outputs_, places_}, param.bias_filler());
    setup.SetFlops(2.0 * static_cast<double>(images_) * static_cast<double>(weights.count()));
  }

  void Plan(LayerPlan& plan) override {
    // So that their windows take no more memory than the weights.
    together_ = std::max(outputs_, kLeastColumns / (elements_ * places_));
    together_ = std::max<int64_t>(1, std::min(images_, together_));
    while (images_ % together_ != 0) --together_;
    columns_.planes = together_ * channels_;
    windows_ = TurnedMatrix(together_ * elements_, places_);
    results_ = TurnedMatrix(together_ * outputs_, places_);
    weights_ = TurnedMatrix(outputs_ * elements_, places_);
    version_ = 0;
    trains_ = plan.trains();
    Device& device = *plan.context().device;
    turned_weights_ = Buffer(device, weights_.bytes());
    product_ = {.batches = places_, .m = together_, .n = outputs_, .k = elements_, .transpose_b = true};
    product_.factors = plan.factors();
    forward_ = PlanKernel(plan, &Operations::MakeBatchedProduct, product_);
    const auto gradient = [&](const BatchedProductProblem& problem) {
      return PlanGradientKernel(plan, &Operations::MakeBatchedProduct, problem);
    };
    window_gradient_ = plan.bottom_grad(0) ? gradient(GradientOfA(product_)) : nullptr;
    weight_gradient_ = plan.param_grad(0) ? gradient(GradientOfB(product_)) : nullptr;
    if (weight_gradient_) plan.BackwardReadsBottom(0);
    size_t backward = 0;
    for (const auto* kernel : {&window_gradient_, &weight_gradient_}) {
      if (*kernel) backward = std::max(backward, (*kernel)->workspace());
    }
    // The weights' gradient, and that of some images.
    const size_t gradients = weight_gradient_ ? weights_.bytes() * (together_ < images_ ? 2 : 1) : 0;
    kernel_at_ = 2 * windows_.bytes() + results_.bytes();
    plan.Workspace(kernel_at_ + forward_->workspace(), kernel_at_ + gradients + backward);
  }

  void Forward(const LayerRun& run) override {
    Operations& ops = *run.ops;
    TurnWeights(run);
    const Memory memory = MemoryOf(run);
    for (int64_t i = 0; i < images_; i += together_) {
      ops.Im2col(columns_, ImageOf(run.bottoms[0], i), memory.windows);
      windows_.Turn(ops, memory.windows, memory.turned_windows);
      forward_->Run(memory.turned_windows, weights(), memory.results, memory.rest);
      results_.TurnBack(ops, memory.results, ImageOf(run.tops[0], i));
    }
    if (bias_) ops.AddBias(BiasOf(), run.tops[0].f32(), run.params[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    Operations& ops = *run.ops;
    if (bias_ && run.param_grads[1].defined()) {
      ops.SumToBias(BiasOf(), run.top_grads[0].f32(), run.param_grads[1].f32());
    }
    if (!weight_gradient_ && !window_gradient_) return;
    const Memory memory = MemoryOf(run);
    auto* const sum = reinterpret_cast<float*>(memory.rest);
    float* const part = sum + weights_.bytes() / sizeof(float);
    std::byte* const scratch = memory.rest + (weight_gradient_ ? weights_.bytes() * (together_ < images_ ? 2 : 1) : 0);
    for (int64_t i = 0; i < images_; i += together_) {
      results_.Turn(ops, ImageOf(run.top_grads[0], i), memory.results);
      if (weight_gradient_) {
        ops.Im2col(columns_, ImageOf(run.bottoms[0], i), memory.windows);
        windows_.Turn(ops, memory.windows, memory.turned_windows);
        weight_gradient_->Run(memory.results, memory.turned_windows, i == 0 ? sum : part, scratch);
        if (i > 0) ops.Axpy(weights_.count(), 1, part, sum);
      }
      if (window_gradient_) {
        window_gradient_->Run(memory.results, weights(), memory.turned_windows, scratch);
        windows_.TurnBack(ops, memory.turned_windows, memory.windows);
        ops.Col2im(columns_, memory.windows, ImageOf(run.bottom_grads[0], i));
      }
    }
    if (weight_gradient_) weights_.TurnBack(ops, sum, run.param_grads[0].f32());
  }

 private:
  struct Memory {
    float *windows, *turned_windows, *results;
    std::byte* rest;
  };

  void ReadWindow(const LayerSetup& setup, const LocalParameter& param, const Shape& shape) {
    const int axes = shape.axes() - 2;
    const auto read = [&](const AxisSetting& setting) { return ReadAxisSetting(setup, "local_param", axes, setting); };
    const std::vector<int64_t> kernel =
        read({"kernel_size", param.kernel_size(), "kernel_h", "kernel_w", param.has_kernel_h(), param.has_kernel_w(),
              param.kernel_h(), param.kernel_w(), -1, 1});
    const std::vector<int64_t> stride = read({"stride", param.stride(), "stride_h", "stride_w", param.has_stride_h(),
                                              param.has_stride_w(), param.stride_h(), param.stride_w(), 1, 1});
    const std::vector<int64_t> pad = read({"pad", param.pad(), "pad_h", "pad_w", param.has_pad_h(), param.has_pad_w(),
                                           param.pad_h(), param.pad_w(), 0, 0});
    channels_ = shape[1];
    std::vector<int64_t> of_window = {channels_}, of_result = {1};
    columns_.axes = axes;
    for (int i = 0; i < axes; ++i) {
      const int64_t padded = shape[2 + i] + 2 * pad[i];
      if (kernel[i] > padded) {
        setup.Fail(param.kernel_size_size() > 0 ? "local_param.kernel_size" : "local_param.kernel_h",
                   "kernel_size " + std::to_string(kernel[i]) + " exceeds the padded extent " + std::to_string(padded) +
                       " of axis " + std::to_string(2 + i) + ", since " + setup.BottomIs(0) +
                       "; lower kernel_size or add pad");
      }
      columns_.axis[i] = {shape[2 + i], kernel[i], stride[i], pad[i], 1, (padded - kernel[i]) / stride[i] + 1};
      of_window.push_back(kernel[i]);
      of_result.push_back(columns_.axis[i].output);
    }
    elements_ = ShapeOf(setup, of_window).count();
    places_ = ShapeOf(setup, of_result).count();
  }

  static Shape ShapeOf(const LayerSetup& setup, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) {
      if (!__builtin_mul_overflow(count, dim, &count)) continue;
      setup.Fail("local_param",
                 "more weights than a machine holds, for each of the places of the window; lower kernel_size or "
                 "num_output, or raise stride");
    }
    return Shape(dims);
  }

  Memory MemoryOf(const LayerRun& run) const {
    const auto floats = [](std::byte* at) { return reinterpret_cast<float*>(at); };
    std::byte* const turned = run.workspace + windows_.bytes();
    return {floats(run.workspace), floats(turned), floats(turned + windows_.bytes()), run.workspace + kernel_at_};
  }
  float* ImageOf(const Tensor& tensor, int64_t image) const { return tensor.f32() + image * tensor.count() / images_; }
  BiasExtents BiasOf() const { return {images_, outputs_ * places_, 1}; }

  float* weights() const { return reinterpret_cast<float*>(turned_weights_.data()); }
  void TurnWeights(const LayerRun& run) {
    if (!trains_ && version_ == run.parameters_version) return;
    weights_.Turn(*run.ops, run.params[0].f32(), weights());
    version_ = run.parameters_version;
  }

  int64_t images_ = 0, channels_ = 0, outputs_ = 0;
  int64_t elements_ = 0, places_ = 0;  // of a window
  int64_t together_ = 1;               // images that are multiplied at once
  bool bias_ = true, trains_ = true;
  uint64_t version_ = 0;  // of the parameters that were turned
  Im2colProblem columns_;
  TurnedMatrix windows_, results_, weights_;
  Buffer turned_weights_;
  BatchedProductProblem product_;
  std::unique_ptr<BatchedProductKernel> forward_, window_gradient_, weight_gradient_;
  size_t kernel_at_ = 0;  // its memory in the workspace
};

}  // namespace

REGISTER_LAYER(Local, LocalLayer, "local_param");

}  // namespace crema
