// Silence: takes any blobs and does nothing, so that they do not count as outputs of the net.
#include "crema/layer.h"

namespace crema {

namespace {

class SilenceLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, -1);
    setup.ExpectTops(0);
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.MakeNonDifferentiable();
  }
};

}  // namespace

REGISTER_LAYER(Silence, SilenceLayer);

}  // namespace crema
