// Softmax: y = exp(x) / sum(exp(x)) along an axis.

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SoftmaxLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const Shape& shape = setup.bottom_shape(0);
    const SoftmaxParameter& param = setup.param().softmax_param();
    const int axis = setup.CanonicalAxis("softmax_param.axis", param.axis());
    axis_ = ClassAxis(shape, axis);
    if (param.causal()) {
      if (axis == 0 || axis != shape.axes() - 1) {
        setup.Fail("softmax_param.causal",
                   "causal leaves out what lies above the diagonal of the last two axes, but axis is " +
                       std::to_string(axis) + " of " + shape.ToString() + "; set axis: -1");
      }
      axis_.causal = shape[axis - 1];
    }
    setup.SetTop(0, shape);
    setup.AllowInPlace();
    if (axis > 0) setup.AllowSplitBatch();
    setup.SetFlops(20.0 * static_cast<double>(shape.count()));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override {
    run.ops->SoftmaxForward(axis_, run.bottoms[0].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->SoftmaxBackward(axis_, run.tops[0].f32(), run.top_grads[0].f32(), run.bottom_grads[0].f32());
  }

 private:
  ClassAxis axis_;
};

}  // namespace

REGISTER_LAYER(Softmax, SoftmaxLayer, "softmax_param");

}  // namespace crema
