// Normalize: x divided by its Euclidean length, times a learnt scale. Blob: the scale, a scalar with channel_shared,
// else [channels]. Gradients are the derivatives; SSD's own layer leaves the scales out of its sum over channels, which
// is the same as long as they are equal.
#include <string>

#include "crema/layer.h"
#include "graph/filler.h"
#include "layers/channel_shape.h"
#include "ops/operations.h"

namespace crema {

namespace {

class NormalizeLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const NormalizeParameter& param = setup.param().norm_param();
    const Shape& shape = setup.bottom_shape(0);
    ExpectChannels(setup);
    if (param.eps() < 0) {
      setup.Fail("norm_param.eps", "must be at least 0; it keeps the division by the length away from 0");
    }
    problem_ = {shape[0], shape[1], shape.count(2), param.across_spatial(), param.channel_shared(), param.eps()};
    const Shape scale = param.channel_shared() ? Shape() : Shape{shape[1]};
    FillerParameter filler = param.scale_filler();
    if (!param.has_scale_filler()) filler.set_value(1);
    AddFilledParam(setup, "norm_param.scale_filler", scale, filler);
    setup.SetTop(0, shape);
    setup.AllowInPlace();
    if (!problem_.whole || problem_.shared) setup.AllowChannelsLast();
    setup.SetFlops(static_cast<double>(shape.count()) * 4);
  }

  void Plan(LayerPlan& plan) override {
    // Channels last, the channels of each pixel are what a small image is otherwise.
    if (plan.bottom(0).layout == Layout::kChannelsLast && !problem_.whole) {
      problem_.images *= problem_.pixels;
      problem_.pixels = 1;
    }
    keeps_ = plan.backward();
    if (!keeps_) return;
    plan.BackwardReadsBottom(0);
    plan.Save({Shape{problem_.vectors()}, DType::kF32});
  }

  void Forward(const LayerRun& run) override {
    run.ops->NormalizeForward(problem_, run.bottoms[0].f32(), run.params[0].f32(), run.tops[0].f32(),
                              keeps_ ? run.saved[0].f32() : nullptr);
  }

  void Backward(const LayerRun& run) override {
    run.ops->NormalizeBackward(problem_, run.bottoms[0].f32(), run.params[0].f32(), run.saved[0].f32(),
                               run.top_grads[0].f32(), run.bottom_grads[0].f32(), run.param_grads[0].f32());
  }

 private:
  NormalizeProblem problem_;
  bool keeps_ = false;  // lengths
};

}  // namespace

REGISTER_LAYER(Normalize, NormalizeLayer, "norm_param");

}  // namespace crema
