// Sigmoid: y = 1 / (1 + exp(-x)).
#include "crema/layer.h"
#include "ops/elementwise.h"

namespace crema {

namespace {

class SigmoidLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowChannelsLast();
    setup.AllowBFloat16();
    setup.AllowInPlace();
    setup.SetFlops(20.0 * static_cast<double>(setup.bottom_shape(0).count()));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override { Map(formula::Sigmoid{}, run.tops[0], run.bottoms[0]); }

  void Backward(const LayerRun& run) override {
    Map(formula::SigmoidGradient{}, run.bottom_grads[0], run.top_grads[0], run.tops[0]);
  }
};

}  // namespace

REGISTER_LAYER(Sigmoid, SigmoidLayer, "sigmoid_param");

}  // namespace crema
