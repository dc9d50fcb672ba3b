// LayerNorm: each vector of the last axes to mean 0 and variance 1, times a learnt scale, plus a learnt shift. Blobs:
// scale and shift, of the shape of those axes.
#include <vector>

#include "layers/group_normalization.h"

namespace crema {

namespace {

class LayerNormLayer : public GroupNormalization {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    const LayerNormParameter& param = setup.param().layer_norm_param();
    const Shape& shape = setup.bottom_shape(0);
    const int axis = setup.CanonicalAxis("layer_norm_param.axis", param.axis());
    const std::vector<int64_t> vector(shape.dims().begin() + axis, shape.dims().end());
    const GroupNormProblem rows = {.images = shape.count(0, axis), .channels = shape.count(axis)};
    SetupRows(setup, param, "layer_norm_param", rows, Shape(vector));
  }
};

}  // namespace

REGISTER_LAYER(LayerNorm, LayerNormLayer, "layer_norm_param");

}  // namespace crema
