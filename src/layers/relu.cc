// ReLU: y = x for x > 0, else negative_slope * x.
#include "crema/layer.h"
#include "ops/elementwise.h"

namespace crema {

namespace {

class ReLULayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    slope_ = setup.param().relu_param().negative_slope();
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowChannelsLast();
    setup.AllowBFloat16();
    // A negative slope maps both signs to positive outputs: only the input tells them apart.
    if (slope_ >= 0) setup.AllowInPlace();
    setup.SetFlops(static_cast<double>(setup.bottom_shape(0).count()));
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    if (slope_ >= 0) {
      plan.BackwardReadsTop(0);
    } else {
      plan.BackwardReadsBottom(0);
    }
  }

  void Forward(const LayerRun& run) override {
    if (slope_ == 0) {
      Map(formula::Relu{}, run.tops[0], run.bottoms[0]);
    } else {
      Map(formula::LeakyRelu{slope_}, run.tops[0], run.bottoms[0]);
    }
  }

  void Backward(const LayerRun& run) override {
    if (slope_ == 0) {
      Map(formula::ReluGradient{}, run.bottom_grads[0], run.top_grads[0], run.tops[0]);
    } else {
      const Tensor& sign = slope_ > 0 ? run.tops[0] : run.bottoms[0];
      Map(formula::LeakyReluGradient{slope_}, run.bottom_grads[0], run.top_grads[0], sign);
    }
  }

 private:
  float slope_ = 0;
};

}  // namespace

REGISTER_LAYER(ReLU, ReLULayer, "relu_param");

}  // namespace crema
