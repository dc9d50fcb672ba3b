// Reverse: the elements along an axis in opposite order.
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ReverseLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const Shape& shape = setup.bottom_shape(0);
    const int axis = setup.CanonicalAxis("reverse_param.axis", setup.param().reverse_param().axis());
    reversal_ = {shape.count(0, axis), shape[axis], shape.count(axis + 1)};
    setup.SetTop(0, shape);
    setup.MoveElements();
    if (reversal_.extent == 1) setup.MakeView();
  }

  void Forward(const LayerRun& run) override {
    run.ops->ReverseAxis(reversal_, run.bottoms[0].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->ReverseAxis(reversal_, run.top_grads[0].f32(), run.bottom_grads[0].f32());
  }

 private:
  AxisReversal reversal_;
};

}  // namespace

REGISTER_LAYER(Reverse, ReverseLayer, "reverse_param");

}  // namespace crema
