// Clip: y = x between min and max, else the nearer of them; the gradient passes where min <= x <= max.
#include "layers/activation.h"

namespace crema {

namespace {

class ClipLayer : public ActivationLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const ClipParameter& param = setup.param().clip_param();
    if (!param.has_min() || !param.has_max()) setup.Fail("clip_param", "give clip_param both min and max");
    if (param.min() > param.max()) setup.Fail("clip_param.min", "min is above max; exchange them");
    ActivationLayer::Setup(setup);
  }
};

}  // namespace

REGISTER_LAYER(Clip, ClipLayer, "clip_param");

}  // namespace crema
