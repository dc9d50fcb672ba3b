// Bias: adds a vector that is stretched over the other axes: learnt, a blob of shape [extents of its axes], or
// bottom 1.
#include "ops/bias.h"

#include "crema/layer.h"
#include "graph/filler.h"
#include "ops/vector_math.h"

namespace crema {

namespace {

class BiasLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, 2);
    setup.ExpectTops(1);
    const BiasParameter& param = setup.param().bias_param();
    const Shape& shape = setup.bottom_shape(0);
    learnt_ = setup.bottoms() == 1;
    const bool number = !learnt_ && setup.bottom_shape(1).axes() == 0;
    const int axis = number ? 0 : setup.CanonicalAxis("bias_param.axis", param.axis());
    const Shape bias = learnt_ ? LearntShape(setup, axis) : setup.bottom_shape(1);
    if (!learnt_) CheckSecondBottom(setup, axis);
    const int end = axis + bias.axes();
    extents_ = {shape.count(0, axis), bias.count(), shape.count(end)};
    if (learnt_) {
      const std::string problem = CheckFiller(param.filler(), bias);
      if (!problem.empty()) setup.Fail("bias_param.filler", problem);
      setup.AddParam({bias, param.filler()});
    }
    setup.SetTop(0, shape);
    setup.AllowInPlace();
    setup.SetFlops(static_cast<double>(shape.count()));
    // Channels last, one number a channel is a row, and a single number is one anyway.
    of_channels_ = axis == 1 && bias.axes() == 1;
    if (of_channels_ || bias.axes() == 0) setup.AllowChannelsLast();
  }

  void Plan(LayerPlan& plan) override {
    if (plan.bottom(0).layout != Layout::kChannelsLast || !of_channels_) return;
    extents_ = {plan.bottom(0).shape.count() / extents_.values, extents_.values, 1};
  }

  void Forward(const LayerRun& run) override {
    AddBias(extents_, run.bottoms[0].f32(), (learnt_ ? run.params[0] : run.bottoms[1]).f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    const float* gradient = run.top_grads[0].f32();
    const Tensor& bias = learnt_ ? run.param_grads[0] : run.bottom_grads[1];
    if (bias.defined()) SumToBias(extents_, gradient, bias.f32());
    if (run.bottom_grads[0].defined()) Copy(extents_.count(), gradient, run.bottom_grads[0].f32());
  }

 private:
  static Shape LearntShape(const LayerSetup& setup, int axis) {
    const Shape& shape = setup.bottom_shape(0);
    const int given = setup.param().bias_param().num_axes();
    if (given < -1 || axis + given > shape.axes()) {
      setup.Fail("bias_param.num_axes", "num_axes " + std::to_string(given) + " from axis " + std::to_string(axis) +
                                            " on does not fit \"" + setup.param().bottom(0) + "\" (" +
                                            shape.ToString() + "); give 0 to " + std::to_string(shape.axes() - axis) +
                                            ", or -1 for all of them");
    }
    const int end = given == -1 ? shape.axes() : axis + given;
    return Shape(std::vector<int64_t>(shape.dims().begin() + axis, shape.dims().begin() + end));
  }

  static void CheckSecondBottom(const LayerSetup& setup, int axis) {
    const Shape &shape = setup.bottom_shape(0), &bias = setup.bottom_shape(1);
    bool fits = axis + bias.axes() <= shape.axes();
    for (int i = 0; fits && i < bias.axes(); ++i) fits = bias[i] == shape[axis + i];
    if (fits) return;
    setup.Fail("bottom", "adds \"" + setup.param().bottom(1) + "\" (" + bias.ToString() + ") to \"" +
                             setup.param().bottom(0) + "\" (" + shape.ToString() + ") from axis " +
                             std::to_string(axis) + " on, where the extents differ; set axis to where they agree");
  }

  bool learnt_ = true, of_channels_ = false;
  BiasExtents extents_;
};

}  // namespace

REGISTER_LAYER(Bias, BiasLayer, "bias_param");

}  // namespace crema
