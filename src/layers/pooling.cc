// Pooling: the maximum, average or a random element of each window. Max pooling may name a second top, which gets the
// index of each maximum in its plane. A ReLU below max pooling may as well stand above it, where there is less to do.
// pooling_param.engine chose between Caffe's own kernels and has no effect here.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "crema/fusion.h"
#include "layers/elementwise_chain.h"
#include "ops/operations.h"

namespace crema {

namespace {

class PoolingLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    const PoolingParameter& param = setup.param().pooling_param();
    setup.ExpectBottoms(1);
    const Shape& shape = setup.bottom_shape(0);
    if (param.pool() != PoolingParameter::MAX && setup.tops() == 2) {
      setup.Fail("top", "only pool: MAX makes a second top (the index of each maximum); remove it");
    }
    setup.ExpectTops(1, 2);
    if (shape.axes() != 4) {
      setup.Fail("bottom", "takes num x channels x height x width, but \"" + setup.param().bottom(0) + "\" is " +
                               shape.ToString());
    }
    if (setup.members().size() > 1) activation_ = ReadActivation(*setup.members().front());
    problem_ = {};
    problem_.method = param.pool() == PoolingParameter::MAX   ? PoolingMethod::kMax
                      : param.pool() == PoolingParameter::AVE ? PoolingMethod::kAverage
                                                              : PoolingMethod::kStochastic;
    problem_.training = setup.phase() == TRAIN;
    problem_.batch = shape[0];
    problem_.channels = shape[1];
    problem_.input_height = shape[2];
    problem_.input_width = shape[3];
    ReadWindows(setup);
    const bool ceil = param.round_mode() == PoolingParameter::CEIL;
    const bool padded = problem_.vertical.pad > 0 || problem_.horizontal.pad > 0;
    problem_.output_height = PooledExtent(problem_.input_height, problem_.vertical, ceil, padded);
    problem_.output_width = PooledExtent(problem_.input_width, problem_.horizontal, ceil, padded);
    CheckExtents(setup);
    const Shape top{shape[0], shape[1], problem_.output_height, problem_.output_width};
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, top);
    // Numbers are drawn for elements as they lie in memory.
    if (problem_.method != PoolingMethod::kStochastic) {
      setup.AllowSplitBatch();
      setup.AllowChannelsLast();
      // Indices do not fit 16 bits.
      if (setup.tops() == 1 && PositionsFit(problem_)) setup.AllowHalfPrecision();
    }
    setup.SetFlops(static_cast<double>(top.count()) *
                   static_cast<double>(problem_.vertical.kernel * problem_.horizontal.kernel));
  }

  void Plan(LayerPlan& plan) override {
    problem_.backward = plan.backward();
    problem_.layout = plan.bottom(0).layout;
    problem_.dtype = plan.bottom(0).dtype;
    KernelChoice choice;
    kernel_ = OperationsOf(*plan.context().device).MakePooling(problem_, &choice, {});
    CREMA_CHECK(kernel_ != nullptr) << "no pooling kernel";
    plan.Chose(std::move(choice.kernel), std::move(choice.skipped));
    saves_ = kernel_->saved().shape.count() > 0;
    if (saves_) plan.Save(kernel_->saved());
    if (problem_.backward && problem_.method == PoolingMethod::kStochastic && !problem_.training) {
      plan.BackwardReadsBottom(0);
    }
    if (problem_.backward && activation_.present()) {
      plan.BackwardReadsTop(0);
      plan.OverwriteTopGradient();
    }
  }

  void Forward(const LayerRun& run) override {
    const RandomStream random(run.context->draw_seed(), StreamId(static_cast<uint32_t>(run.layer_index), run.pass));
    kernel_->Forward(run.bottoms[0].raw(), run.tops[0].raw(), saves_ ? run.saved[0].raw() : nullptr,
                     run.tops.size() > 1 ? run.tops[1].f32() : nullptr, &random);
    if (activation_.present()) run.ops->Activate(activation_, run.tops[0], run.tops[0]);
  }

  void Backward(const LayerRun& run) override {
    if (activation_.present())
      run.ops->ActivationGradient(activation_, run.tops[0], run.top_grads[0], run.top_grads[0]);
    kernel_->Backward(run.bottoms[0].raw(), run.top_grads[0].raw(), saves_ ? run.saved[0].raw() : nullptr,
                      run.bottom_grads[0].raw());
  }

 private:
  void ReadWindows(const LayerSetup& setup) {
    const PoolingParameter& param = setup.param().pooling_param();
    const auto read = [&](const char* name, bool has, int64_t both, bool has_h, int64_t h, bool has_w, int64_t w,
                          int64_t* vertical, int64_t* horizontal) {
      const std::string field = std::string("pooling_param.") + name;
      const std::string stem = std::string(name).substr(0, std::string(name).find("_size"));
      if (has && (has_h || has_w)) {
        setup.Fail(field, "has both " + std::string(name) + " and " + stem + (has_h ? "_h" : "_w") +
                              "; keep one of the two forms");
      }
      if (has_h != has_w) {
        setup.Fail("pooling_param." + stem + (has_h ? "_h" : "_w"),
                   "has " + stem + (has_h ? "_h without " : "_w without ") + stem + (has_h ? "_w" : "_h") +
                       "; give both, or " + name);
      }
      *vertical = has_h ? h : both;
      *horizontal = has_w ? w : both;
    };
    PoolingWindow &vertical = problem_.vertical, &horizontal = problem_.horizontal;
    read("kernel_size", param.has_kernel_size(), param.kernel_size(), param.has_kernel_h(), param.kernel_h(),
         param.has_kernel_w(), param.kernel_w(), &vertical.kernel, &horizontal.kernel);
    read("stride", param.has_stride(), param.stride(), param.has_stride_h(), param.stride_h(), param.has_stride_w(),
         param.stride_w(), &vertical.stride, &horizontal.stride);
    read("pad", param.has_pad(), param.pad(), param.has_pad_h(), param.pad_h(), param.has_pad_w(), param.pad_w(),
         &vertical.pad, &horizontal.pad);
    const bool kernel_set = param.has_kernel_size() || param.has_kernel_h();
    if (vertical.stride < 1 || horizontal.stride < 1) {
      setup.Fail(param.has_stride_h() ? "pooling_param.stride_h" : "pooling_param.stride", "stride must be at least 1");
    }
    if (param.global_pooling()) {
      if (kernel_set) {
        setup.Fail("pooling_param.global_pooling",
                   "global_pooling takes the whole plane as its window; remove the kernel size");
      }
      if (vertical.pad != 0 || horizontal.pad != 0 || vertical.stride != 1 || horizontal.stride != 1) {
        setup.Fail("pooling_param.global_pooling",
                   "global_pooling makes one window of the whole plane; remove pad and stride");
      }
      vertical.kernel = problem_.input_height;
      horizontal.kernel = problem_.input_width;
      return;
    }
    if (!kernel_set) {
      setup.Fail("pooling_param",
                 "kernel_size is not set; give kernel_size, or kernel_h and kernel_w, or global_pooling: true");
    }
    const char* kernel_field = param.has_kernel_size() ? "pooling_param.kernel_size" : "pooling_param.kernel_h";
    const char* pad_field = param.has_pad() ? "pooling_param.pad" : "pooling_param.pad_h";
    if (vertical.kernel < 1 || horizontal.kernel < 1) setup.Fail(kernel_field, "kernel_size must be at least 1");
    if (vertical.pad >= vertical.kernel || horizontal.pad >= horizontal.kernel) {
      setup.Fail(pad_field, "pad " + std::to_string(std::max(vertical.pad, horizontal.pad)) +
                                " must be smaller than the kernel, else a window may lie in the padding alone");
    }
    if (problem_.method == PoolingMethod::kStochastic && (vertical.pad > 0 || horizontal.pad > 0)) {
      setup.Fail(pad_field, "pool: STOCHASTIC takes no padding; use MAX or AVE, or pad in a layer before");
    }
  }

  void CheckExtents(LayerSetup& setup) const {
    const PoolingWindow &vertical = problem_.vertical, &horizontal = problem_.horizontal;
    const auto pair = [](int64_t a, int64_t b) { return std::to_string(a) + "x" + std::to_string(b); };
    if (problem_.output_height < 1 || problem_.output_width < 1) {
      const PoolingParameter& param = setup.param().pooling_param();
      const std::string kernel =
          param.has_kernel_size() ? std::to_string(param.kernel_size()) : pair(vertical.kernel, horizontal.kernel);
      setup.Fail(param.has_kernel_size() ? "pooling_param.kernel_size" : "pooling_param.kernel_h",
                 "kernel_size " + kernel + " exceeds the padded input " +
                     pair(problem_.input_height + 2 * vertical.pad, problem_.input_width + 2 * horizontal.pad) +
                     " from \"" + setup.param().bottom(0) + "\"; lower kernel_size or add pad");
    }
    constexpr int64_t kMost = 1 << 24;
    if (std::max(problem_.output_height, problem_.output_width) > kMost) {
      setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" is " + setup.bottom_shape(0).ToString() +
                               ", of which more than " + std::to_string(kMost) +
                               " windows would be made along an axis; correct the layers before");
    }
    if (WindowRanges(problem_.input_height, vertical, problem_.output_height).filled() < problem_.output_height ||
        WindowRanges(problem_.input_width, horizontal, problem_.output_width).filled() < problem_.output_width) {
      setup.Warn(
          "pooling_param.stride",
          "the last window starts behind the input, so its output is always 0; set round_mode: FLOOR to drop it");
    }
  }

  PoolingProblem problem_;
  Activation activation_;  // of the pooled
  std::unique_ptr<PoolingKernel> kernel_;
  bool saves_ = false;
};

// A function that never falls may be done before or after taking a maximum.
bool AcceptsPooling(std::span<const LayerSetup* const> members, std::string* why_not) {
  const LayerParameter& pooling = members.back()->param();
  if (pooling.pooling_param().pool() != PoolingParameter::MAX) *why_not = "only maxima can wait for it";
  if (pooling.top_size() > 1) *why_not = "the indices of maxima among equals would change";
  if (!ReadActivation(members.front()->param()).gradient_reads_sign() && members.front()->param().type() == "ReLU") {
    *why_not = "a negative slope turns maxima into minima";
  }
  return why_not->empty();
}

}  // namespace

REGISTER_LAYER(Pooling, PoolingLayer, "pooling_param");
REGISTER_GATHERING(ActivatedPooling, PoolingLayer, AcceptsPooling, "ReLU|ReLU6", "Pooling");

}  // namespace crema
