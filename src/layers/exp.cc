// Exp: y = base ^ (shift + scale * x).
#include "layers/activation.h"

namespace crema {

namespace {

class ExpLayer : public ActivationLayer {
 public:
  void Setup(LayerSetup& setup) override {
    CheckBase(setup, "exp_param", setup.param().exp_param().base());
    ActivationLayer::Setup(setup);
  }
};

}  // namespace

REGISTER_LAYER(Exp, ExpLayer, "exp_param");

}  // namespace crema
