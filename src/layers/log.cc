// Log: y = log_base(shift + scale * x).
#include "layers/activation.h"

namespace crema {

namespace {

class LogLayer : public ActivationLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const float base = setup.param().log_param().base();
    CheckBase(setup, "log_param", base);
    if (base == 1) setup.Fail("log_param.base", "there is no logarithm to the base 1; give another number above 0");
    ActivationLayer::Setup(setup);
  }
};

}  // namespace

REGISTER_LAYER(Log, LogLayer, "log_param");

}  // namespace crema
