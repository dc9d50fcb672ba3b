// ChannelNorm: the Euclidean length of the channels of each place, as FlowNet 2.0 sees how bright a difference of
// images is (Ilg et al., 2017).
#include "crema/layer.h"
#include "layers/memory_axes.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ChannelNormLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    Shape shape = setup.bottom_shape(0);
    if (shape.axes() < 2) setup.Fail("bottom", "takes num x channels x ..., but " + setup.BottomIs(0));
    setup.SetFlops(2.0 * static_cast<double>(shape.count()));
    shape.set(1, 1);
    setup.SetTop(0, shape);
    setup.KeepCoordinates();
    setup.AllowChannelsLast();
    setup.AllowSplitBatch();
  }

  void Plan(LayerPlan& plan) override {
    axis_ = ClassAxis(InMemoryOrder(plan.bottom(0)), AxisInMemory(plan.bottom(0), 1));
    if (!plan.backward()) return;
    plan.BackwardReadsBottom(0);
    plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override {
    run.ops->ChannelLengthForward(axis_, run.bottoms[0].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->ChannelLengthBackward(axis_, run.bottoms[0].f32(), run.tops[0].f32(), run.top_grads[0].f32(),
                                   run.bottom_grads[0].f32());
  }

 private:
  ClassAxis axis_;
};

}  // namespace

REGISTER_LAYER(ChannelNorm, ChannelNormLayer);

}  // namespace crema
