// PReLU: y = x for x > 0, else slope * x, with a learnt slope for each channel, or one for all: a blob of shape
// [channels], or a scalar.
#include "crema/layer.h"
#include "graph/filler.h"
#include "layers/channel_shape.h"
#include "ops/operations.h"

namespace crema {

namespace {

class PreluLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const PReLUParameter& param = setup.param().prelu_param();
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() < 2) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " has no channels; they are axis 1, so give at least two axes");
    }
    shared_ = param.channel_shared();
    const Shape slopes = shared_ ? Shape() : Shape{shape[1]};
    FillerParameter filler = param.filler();
    if (!param.has_filler()) filler.set_value(0.25f);
    AddFilledParam(setup, "prelu_param.filler", slopes, filler);
    setup.SetTop(0, shape);
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.AllowInPlace();
    setup.AllowSplitBatch();
    setup.SetFlops(static_cast<double>(shape.count()));
  }

  void Plan(LayerPlan& plan) override {
    const TensorSpec& bottom = plan.bottom(0);
    grid_ = shared_ ? ChannelGrid{.pixels = bottom.shape.count(), .dtype = bottom.dtype} : GridOf(bottom);
    // The top does not tell on which side of zero the bottom was: slopes may become negative.
    if (plan.backward()) plan.BackwardReadsBottom(0);
    const size_t scratch = OperationsOf(*plan.context().device).PreluWorkspace(grid_);
    plan.Workspace(scratch, scratch);
  }

  void Forward(const LayerRun& run) override {
    run.ops->PreluForward(grid_, run.bottoms[0].raw(), run.params[0].f32(), run.tops[0].raw(), run.workspace);
  }

  void Backward(const LayerRun& run) override {
    run.ops->PreluBackward(grid_, run.bottoms[0].raw(), run.params[0].f32(), run.top_grads[0].raw(),
                           run.bottom_grads[0].raw(), run.param_grads[0].f32(), run.workspace);
  }

 private:
  ChannelGrid grid_;
  bool shared_ = false;
};

}  // namespace

REGISTER_LAYER(PReLU, PreluLayer, "prelu_param");

}  // namespace crema
