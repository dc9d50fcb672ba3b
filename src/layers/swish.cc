// Swish: y = x * sigmoid(beta * x) (Ramachandran, Zoph and Le, 2017).
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SwishLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    swish_ = {Activation::Kind::kSwish, setup.param().swish_param().beta()};
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.AllowInPlace();
    setup.AllowSplitBatch();
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsBottom(0);
  }

  void Forward(const LayerRun& run) override { run.ops->Activate(swish_, run.bottoms[0], run.tops[0]); }

  void Backward(const LayerRun& run) override {
    run.ops->ActivationGradient(swish_, run.bottoms[0], run.top_grads[0], run.bottom_grads[0]);
  }

 private:
  Activation swish_;
};

}  // namespace

REGISTER_LAYER(Swish, SwishLayer, "swish_param");

}  // namespace crema
