// NegSquare: y = -x^2. Of LiteFlowNet.
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class NegSquareLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.AllowInPlace();
    setup.AllowSplitBatch();
    setup.SetFlops(2.0 * static_cast<double>(setup.bottom_shape(0).count()));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsBottom(0);
  }

  void Forward(const LayerRun& run) override {
    run.ops->Product(run.bottoms[0], run.bottoms[0], run.tops[0]);
    run.ops->Multiply(-1, run.tops[0], run.tops[0]);
  }

  void Backward(const LayerRun& run) override {
    run.ops->Product(run.bottoms[0], run.top_grads[0], run.bottom_grads[0]);
    run.ops->Multiply(-2, run.bottom_grads[0], run.bottom_grads[0]);
  }
};

}  // namespace

REGISTER_LAYER(NegSquare, NegSquareLayer);

}  // namespace crema
