// Split: several names for one blob. Caffe inserts such layers by itself and some files spell them out; here any blob
// may be read several times.
#include "crema/layer.h"

namespace crema {

namespace {

class SplitLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1, -1);
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, setup.bottom_shape(0));
    setup.KeepCoordinates();
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.MakeView();
  }
};

}  // namespace

REGISTER_LAYER(Split, SplitLayer);

}  // namespace crema
