// Correlation: how well windows of two images' features match, for each displacement up to some distance (Fischer et
// al., "FlowNet: Learning Optical Flow with Convolutional Networks", 2015).
#include <cstdint>
#include <initializer_list>
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

namespace {

class CorrelationLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const CorrelationParameter& param = setup.param().correlation_param();
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() != 4 || shape.count(1) == 0) {
      setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(0));
    }
    if (setup.bottom_shape(1) != shape) {
      setup.Fail("bottom", "both bottoms must have one shape, but " + setup.BottomIs(0) + " and " + setup.BottomIs(1));
    }
    ReadSettings(setup, param);
    problem_.images = shape[0];
    problem_.channels = shape[1];
    problem_.height = shape[2];
    problem_.width = shape[3];
    problem_.rows = Windows(setup, 2);
    problem_.columns = Windows(setup, 3);
    const int64_t padding = 2 * problem_.pad;
    CountOf(setup, {shape[0], shape[1], shape[2] + padding, shape[3] + padding, 2 * sizeof(float)});
    const int64_t elements =
        CountOf(setup, {shape[0], problem_.side(), problem_.side(), problem_.rows, problem_.columns});
    setup.SetTop(0, {problem_.images, problem_.displacements(), problem_.rows, problem_.columns});
    setup.AllowSplitBatch();
    setup.SetFlops(2.0 * static_cast<double>(elements) * static_cast<double>(problem_.channels) *
                   static_cast<double>(problem_.kernel * problem_.kernel));
  }

  void Plan(LayerPlan& plan) override {
    const size_t bytes = OperationsOf(*plan.context().device).CorrelationWorkspace(problem_);
    plan.Workspace(bytes, plan.backward() ? bytes : 0);
    if (!plan.backward()) return;
    plan.BackwardReadsBottom(0);
    plan.BackwardReadsBottom(1);
  }

  void Forward(const LayerRun& run) override {
    run.ops->CorrelationForward(problem_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32(), run.workspace);
  }

  void Backward(const LayerRun& run) override {
    const auto gradient = [&](int i) { return run.bottom_grads[i].defined() ? run.bottom_grads[i].f32() : nullptr; };
    run.ops->CorrelationBackward(problem_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.top_grads[0].f32(),
                                 gradient(0), gradient(1), run.workspace);
  }

 private:
  static int64_t CountOf(const LayerSetup& setup, std::initializer_list<int64_t> extents) {
    int64_t count = 1;
    for (const int64_t extent : extents) {
      if (!__builtin_mul_overflow(count, extent, &count)) continue;
      setup.Fail("correlation_param", "more elements than a machine holds; lower max_displacement or pad");
    }
    return count;
  }

  void ReadSettings(LayerSetup& setup, const CorrelationParameter& param) {
    const std::string block = "correlation_param";
    if (!param.has_kernel_size()) setup.Fail(block, "kernel_size must be given; 1 compares single pixels");
    if (!param.has_max_displacement()) setup.Fail(block, "max_displacement must be given, in pixels");
    if (param.kernel_size() % 2 == 0) {
      setup.Fail(block + ".kernel_size",
                 "kernel_size is " + std::to_string(param.kernel_size()) + "; give an odd number");
    }
    ReadInRange(setup, block + ".stride_1", param.stride_1(), {.low = 1});
    ReadInRange(setup, block + ".stride_2", param.stride_2(), {.low = 1});
    if (param.single_direction() != 0) {
      setup.Fail(block + ".single_direction",
                 "single_direction is of the type Correlation1D, which crema does not have; leave it out");
    }
    if (param.do_abs()) setup.Warn(block + ".do_abs", "do_abs has no effect, as in FlowNet's fork");
    problem_ = {};
    problem_.pad = param.pad();
    problem_.kernel = param.kernel_size();
    problem_.stride = param.stride_1();
    problem_.reach = param.max_displacement();
    problem_.step = param.stride_2();
    problem_.radius = problem_.reach / problem_.step;
    problem_.subtract = param.correlation_type() == CorrelationParameter::SUBTRACT;
  }

  int64_t Windows(const LayerSetup& setup, int axis) const {
    const int64_t padded = setup.bottom_shape(0)[axis] + 2 * problem_.pad;
    const int64_t left = padded - 2 * problem_.reach - (problem_.kernel - 1);
    if (left < 1) {
      setup.Fail("correlation_param.max_displacement",
                 "max_displacement " + std::to_string(problem_.reach) + " on both sides of kernel_size " +
                     std::to_string(problem_.kernel) + " exceeds the padded extent " + std::to_string(padded) +
                     " of axis " + std::to_string(axis) + ", since " + setup.BottomIs(0) +
                     "; lower max_displacement, or add as much pad");
    }
    return (left - 1) / problem_.stride + 1;
  }

  CorrelationProblem problem_;
};

}  // namespace

REGISTER_LAYER(Correlation, CorrelationLayer, "correlation_param");

}  // namespace crema
