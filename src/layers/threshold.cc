// Threshold: y = 1 for x > threshold, else 0. It has no gradient.
#include "layers/activation.h"

namespace crema {

namespace {

class ThresholdLayer : public ActivationLayer {
 public:
  void Setup(LayerSetup& setup) override {
    ActivationLayer::Setup(setup);
    setup.MakeNonDifferentiable();
  }
};

}  // namespace

REGISTER_LAYER(Threshold, ThresholdLayer, "threshold_param");

}  // namespace crema
