// ExpMax: y = exp(x - the largest x of the channels of a place), the powers of a softmax before they are divided by
// their sum. As in LiteFlowNet (Hui, Tang and Loy, 2018), where that division follows, the largest one counts as a
// constant in the gradient, which then is that of the quotient.
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ExpMaxLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() < 2) setup.Fail("bottom", "takes num x channels x ..., but " + setup.BottomIs(0));
    axis_ = ClassAxis(shape, 1);
    setup.SetTop(0, shape);
    setup.AllowInPlace();
    setup.AllowSplitBatch();
    setup.SetFlops(10.0 * static_cast<double>(shape.count()));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override { run.ops->ExpBelowPeak(axis_, run.bottoms[0].f32(), run.tops[0].f32()); }

  void Backward(const LayerRun& run) override { run.ops->Product(run.tops[0], run.top_grads[0], run.bottom_grads[0]); }

 private:
  ClassAxis axis_;
};

}  // namespace

REGISTER_LAYER(ExpMax, ExpMaxLayer);

}  // namespace crema
