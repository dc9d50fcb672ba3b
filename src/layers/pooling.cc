// Pooling: the maximum, average or a random element of each window of images or volumes. Max pooling may name a second
// top, which gets the index of each maximum in its plane, counted through the slices of a volume. A ReLU below max
// pooling may as well stand above it, where there is less to do. pooling_param.engine chose between Caffe's own kernels
// and has no effect here.
#include <algorithm>
#include <string>
#include <vector>

#include "crema/fusion.h"
#include "layers/axis_settings.h"
#include "layers/elementwise_chain.h"
#include "layers/plan_kernel.h"
#include "layers/window_map.h"
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
    if (shape.axes() != 4 && shape.axes() != 5) {
      setup.Fail("bottom", "takes num x channels x height x width, or num x channels x depth x height x width, but \"" +
                               setup.param().bottom(0) + "\" is " + shape.ToString());
    }
    if (setup.members().size() > 1) activation_ = ReadActivation(*setup.members().front());
    problem_ = {};
    problem_.method = param.pool() == PoolingParameter::MAX   ? PoolingMethod::kMax
                      : param.pool() == PoolingParameter::AVE ? PoolingMethod::kAverage
                                                              : PoolingMethod::kStochastic;
    problem_.training = setup.phase() == TRAIN;
    problem_.batch = shape[0];
    problem_.channels = shape[1];
    std::vector<Axis> axes;
    for (int i = 2; i < shape.axes(); ++i) axes.push_back({shape[i], {}, 1});
    ReadWindows(setup, &axes);
    const bool ceil = param.round_mode() == PoolingParameter::CEIL;
    const bool padded = std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.window.pad > 0; });
    for (Axis& axis : axes) axis.output = PooledExtent(axis.input, axis.window, ceil, padded);
    CheckExtents(setup, axes);
    std::vector<int64_t> top{shape[0], shape[1]};
    double elements = 1;
    for (const Axis& axis : axes) {
      top.push_back(axis.output);
      elements *= static_cast<double>(axis.window.kernel);
    }
    constexpr double kMostElements = int64_t{1} << 40;  // what is computed with them stays exact
    if (elements > kMostElements) {
      setup.Fail(KernelField(param), "a window has more elements than are possible; lower the kernel size and pad");
    }
    std::vector<LayerSetup::AxisMap> map;
    for (const Axis& axis : axes) map.push_back(WindowMap(axis.window.kernel, axis.window.stride, axis.window.pad));
    setup.SetCoordinateMap(std::move(map));
    SetProblem(std::move(axes));
    if (setup.tops() > 1) CheckIndices(setup);
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, Shape(top));
    // Numbers are drawn for elements as they lie in memory.
    if (problem_.method != PoolingMethod::kStochastic) {
      setup.AllowSplitBatch();
      setup.AllowChannelsLast();
      // Indices do not fit 16 bits.
      if (setup.tops() == 1 && PositionsFit(problem_)) setup.AllowHalfPrecision();
    }
    setup.SetFlops(static_cast<double>(problem_.outputs()) * elements);
  }

  void Plan(LayerPlan& plan) override {
    problem_.backward = plan.backward();
    problem_.layout = plan.bottom(0).layout;
    problem_.dtype = plan.bottom(0).dtype;
    kernel_ = PlanKernel(plan, &Operations::MakePooling, problem_);
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
  struct Axis {
    int64_t input;
    PoolingWindow window;
    int64_t output;
  };

  static const char* KernelField(const PoolingParameter& param) {
    return param.kernel_size_size() > 0 ? "pooling_param.kernel_size" : "pooling_param.kernel_h";
  }

  static void ReadWindows(const LayerSetup& setup, std::vector<Axis>* axes) {
    const PoolingParameter& param = setup.param().pooling_param();
    const auto read = [&](const AxisSetting& setting, int64_t PoolingWindow::*member) {
      if (setting.values.empty() && setting.has_vertical != setting.has_horizontal) {
        const char* given = setting.has_vertical ? setting.vertical_name : setting.horizontal_name;
        const char* other = setting.has_vertical ? setting.horizontal_name : setting.vertical_name;
        setup.Fail(std::string("pooling_param.") + given,
                   std::string("has ") + given + " without " + other + "; give both, or " + setting.name);
      }
      const std::vector<int64_t> values =
          ReadAxisSetting(setup, "pooling_param", static_cast<int>(axes->size()), setting);
      for (size_t i = 0; i < values.size(); ++i) (*axes)[i].window.*member = values[i];
    };
    const auto any = [&](const auto& holds) { return std::any_of(axes->begin(), axes->end(), holds); };
    read({"stride", param.stride(), "stride_h", "stride_w", param.has_stride_h(), param.has_stride_w(),
          param.stride_h(), param.stride_w(), 1, 1},
         &PoolingWindow::stride);
    read({"pad", param.pad(), "pad_h", "pad_w", param.has_pad_h(), param.has_pad_w(), param.pad_h(), param.pad_w(), 0,
          0},
         &PoolingWindow::pad);
    const bool kernel_set = param.kernel_size_size() > 0 || param.has_kernel_h() || param.has_kernel_w();
    if (param.global_pooling()) {
      if (kernel_set) {
        setup.Fail("pooling_param.global_pooling",
                   "global_pooling takes the whole plane as its window; remove the kernel size");
      }
      if (any([](const Axis& axis) { return axis.window.pad != 0 || axis.window.stride != 1; })) {
        setup.Fail("pooling_param.global_pooling",
                   "global_pooling makes one window of the whole plane; remove pad and stride");
      }
      for (Axis& axis : *axes) axis.window.kernel = axis.input;
      return;
    }
    if (!kernel_set) {
      setup.Fail("pooling_param",
                 "kernel_size is not set; give kernel_size, or kernel_h and kernel_w, or global_pooling: true");
    }
    read({"kernel_size", param.kernel_size(), "kernel_h", "kernel_w", param.has_kernel_h(), param.has_kernel_w(),
          param.kernel_h(), param.kernel_w(), -1, 1},
         &PoolingWindow::kernel);
    const char* pad_field = param.pad_size() > 0 ? "pooling_param.pad" : "pooling_param.pad_h";
    for (const Axis& axis : *axes) {
      if (axis.window.pad < axis.window.kernel) continue;
      setup.Fail(pad_field, "pad " + std::to_string(axis.window.pad) +
                                " must be smaller than the kernel, else a window may lie in the padding alone");
    }
    if (param.pool() == PoolingParameter::STOCHASTIC && any([](const Axis& axis) { return axis.window.pad > 0; })) {
      setup.Fail(pad_field, "pool: STOCHASTIC takes no padding; use MAX or AVE, or pad in a layer before");
    }
  }

  static void CheckExtents(LayerSetup& setup, const std::vector<Axis>& axes) {
    const PoolingParameter& param = setup.param().pooling_param();
    std::vector<int64_t> kernel, padded;
    bool fits = true;
    for (const Axis& axis : axes) {
      kernel.push_back(axis.window.kernel);
      padded.push_back(axis.input + 2 * axis.window.pad);
      fits &= axis.output > 0;
    }
    if (!fits) {
      setup.Fail(KernelField(param),
                 "kernel_size " +
                     (param.kernel_size_size() == 1 ? std::to_string(kernel[0]) : Shape(kernel).ToString()) +
                     " exceeds the padded input " + Shape(padded).ToString() + " from \"" + setup.param().bottom(0) +
                     "\"; lower kernel_size or add pad");
    }
    constexpr int64_t kMost = 1 << 24;
    bool filled = true;
    for (const Axis& axis : axes) {
      if (axis.output > kMost) {
        setup.Fail("bottom", setup.BottomIs(0) + ", of which more than " + std::to_string(kMost) +
                                 " windows would be made along an axis; correct the layers before");
      }
      filled &= WindowRanges(axis.input, axis.window, axis.output).filled() == axis.output;
    }
    if (!filled) {
      setup.Warn(
          "pooling_param.stride",
          "the last window starts behind the input, so its output is always 0; set round_mode: FLOOR to drop it");
    }
  }

  // What f32 cannot count would point at a neighbour.
  void CheckIndices(const LayerSetup& setup) const {
    constexpr int64_t kMost = 1 << 24;
    if (problem_.input_plane() <= kMost) return;
    setup.Fail("top", "the second top (the index of each maximum) can count " + std::to_string(kMost) +
                          " elements, but a channel of \"" + setup.param().bottom(0) + "\" has " +
                          std::to_string(problem_.input_plane()) + "; remove it, or pool smaller parts");
  }

  // Those of images have no depth.
  void SetProblem(std::vector<Axis> axes) {
    if (axes.size() == 2) axes.insert(axes.begin(), {1, {}, 1});
    problem_.input_depth = axes[0].input;
    problem_.depth = axes[0].window;
    problem_.output_depth = axes[0].output;
    problem_.input_height = axes[1].input;
    problem_.vertical = axes[1].window;
    problem_.output_height = axes[1].output;
    problem_.input_width = axes[2].input;
    problem_.horizontal = axes[2].window;
    problem_.output_width = axes[2].output;
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
REGISTER_FUSION(ActivatedPooling, PoolingLayer, .types = {"ReLU|ReLU6", "Pooling"}, .accepts = AcceptsPooling,
                .gathers = true);

}  // namespace crema
