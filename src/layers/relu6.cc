// ReLU6: y = x between 0 and 6, else the nearer of them (Howard et al., "MobileNets", 2017).
#include "crema/layer.h"
#include "ops/elementwise.h"

namespace crema {

namespace {

struct Relu6 {
  CREMA_FORMULA float operator()(float x) const {
    const float positive = x < 0.0f ? 0.0f : x;
    return positive > 6.0f ? 6.0f : positive;
  }
};

// From the output: it lies between the limits exactly where the input did.
struct Relu6Gradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return (y > 0.0f) & (y < 6.0f) ? dy : 0.0f; }
};

class ReLU6Layer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowInPlace();
    setup.AllowChannelsLast();
    setup.AllowBFloat16();
    setup.SetFlops(static_cast<double>(setup.bottom_shape(0).count()));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override { Map(Relu6{}, run.tops[0], run.bottoms[0]); }

  void Backward(const LayerRun& run) override {
    Map(Relu6Gradient{}, run.bottom_grads[0], run.top_grads[0], run.tops[0]);
  }
};

}  // namespace

REGISTER_LAYER(ReLU6, ReLU6Layer);

}  // namespace crema
