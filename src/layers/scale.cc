// Scale: multiplies by a vector that is stretched over the other axes: learnt, a blob of shape [extents of its axes],
// or bottom 1; then adds a learnt vector of the same shape with bias_term.
#include "crema/layer.h"
#include "graph/filler.h"
#include "ops/channels.h"

namespace crema {

namespace {

class ScaleLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, 2);
    setup.ExpectTops(1);
    const ScaleParameter& param = setup.param().scale_param();
    const Shape& shape = setup.bottom_shape(0);
    learnt_ = setup.bottoms() == 1;
    has_bias_ = param.bias_term();
    const bool number = !learnt_ && setup.bottom_shape(1).axes() == 0;
    const int axis = number ? 0 : setup.CanonicalAxis("scale_param.axis", param.axis());
    const Shape scale = learnt_ ? LearntShape(setup, axis) : setup.bottom_shape(1);
    if (!learnt_) CheckSecondBottom(setup, axis);
    grid_ = {shape.count(0, axis), scale.count(), shape.count(axis + scale.axes()), Layout::kPlain, DType::kF32};
    if (learnt_) AddBlob(setup, scale, "scale_param.filler", WithDefault(param.filler(), param.has_filler(), 1));
    if (has_bias_) AddBlob(setup, scale, "scale_param.bias_filler", param.bias_filler());
    setup.SetTop(0, shape);
    setup.AllowInPlace();
    setup.SetFlops(static_cast<double>(shape.count()) * (has_bias_ ? 2 : 1));
    // Channels last, one number a channel is a row, and a single number is one anyway.
    of_channels_ = axis == 1 && scale.axes() == 1;
    if (of_channels_ || scale.axes() == 0) setup.AllowChannelsLast();
    if (of_channels_ && learnt_) setup.AllowBFloat16();
  }

  void Plan(LayerPlan& plan) override {
    if (of_channels_) grid_.layout = plan.bottom(0).layout;
    grid_.dtype = plan.bottom(0).dtype;
    scale_grad_ = learnt_ ? plan.param_grad(0) : plan.bottom_grad(1);
    if (scale_grad_) plan.BackwardReadsBottom(0);
    if (!learnt_ && plan.bottom_grad(0)) plan.BackwardReadsBottom(1);
    sum_bytes_ = (static_cast<size_t>(grid_.channels) * sizeof(float) + 63) / 64 * 64;
    plan.Workspace(ChannelWorkspace(grid_), sum_bytes_ + ChannelWorkspace(grid_));
  }

  void Forward(const LayerRun& run) override {
    RunChannelAffine(grid_,
                     {.x = run.bottoms[0].raw(),
                      .scale = ScaleOf(run),
                      .shift = has_bias_ ? run.params[bias_index()].f32() : nullptr,
                      .y = run.tops[0].raw()},
                     run.workspace);
  }

  void Backward(const LayerRun& run) override {
    const void* dy = run.top_grads[0].raw();
    std::byte* scratch = run.workspace + sum_bytes_;
    const Tensor bias_grad = has_bias_ ? run.param_grads[bias_index()] : Tensor();
    float* sum = bias_grad.defined() ? bias_grad.f32() : reinterpret_cast<float*>(run.workspace);
    if (scale_grad_) {
      float* product = (learnt_ ? run.param_grads[0] : run.bottom_grads[1]).f32();
      ChannelGradientSums(grid_, {.dy = dy}, run.bottoms[0].raw(), nullptr, sum, product, scratch);
    } else if (bias_grad.defined()) {
      ChannelGradientSums(grid_, {.dy = dy}, nullptr, nullptr, sum, nullptr, scratch);
    }
    if (!run.bottom_grads[0].defined()) return;
    RunChannelGradientMap(grid_, {.g = {.dy = dy}, .a = ScaleOf(run), .dx = run.bottom_grads[0].raw()}, scratch);
  }

 private:
  int bias_index() const { return learnt_ ? 1 : 0; }
  const float* ScaleOf(const LayerRun& run) const { return (learnt_ ? run.params[0] : run.bottoms[1]).f32(); }

  static FillerParameter WithDefault(FillerParameter filler, bool given, float value) {
    if (!given) filler.set_value(value);
    return filler;
  }

  static void AddBlob(LayerSetup& setup, const Shape& shape, const char* field, const FillerParameter& filler) {
    const std::string problem = CheckFiller(filler, shape);
    if (!problem.empty()) setup.Fail(field, problem);
    setup.AddParam({shape, filler});
  }

  static Shape LearntShape(const LayerSetup& setup, int axis) {
    const Shape& shape = setup.bottom_shape(0);
    const int given = setup.param().scale_param().num_axes();
    if (given < -1 || axis + given > shape.axes()) {
      setup.Fail("scale_param.num_axes", "num_axes " + std::to_string(given) + " from axis " + std::to_string(axis) +
                                             " on does not fit a bottom of shape " + shape.ToString() +
                                             "; give at most " + std::to_string(shape.axes() - axis) +
                                             ", or -1 for all");
    }
    const int end = given == -1 ? shape.axes() : axis + given;
    return Shape(std::vector<int64_t>(shape.dims().begin() + axis, shape.dims().begin() + end));
  }

  static void CheckSecondBottom(const LayerSetup& setup, int axis) {
    const Shape &shape = setup.bottom_shape(0), &scale = setup.bottom_shape(1);
    bool fits = axis + scale.axes() <= shape.axes();
    for (int i = 0; fits && i < scale.axes(); ++i) fits = scale[i] == shape[axis + i];
    if (fits) return;
    setup.Fail("bottom", "bottom 1 must have the extents of bottom 0 (" + shape.ToString() + ") from axis " +
                             std::to_string(axis) + " on, but is " + scale.ToString());
  }

  ChannelGrid grid_;
  bool learnt_ = true, has_bias_ = false, of_channels_ = false, scale_grad_ = false;
  size_t sum_bytes_ = 0;
};

}  // namespace

REGISTER_LAYER(Scale, ScaleLayer, "scale_param");

}  // namespace crema
