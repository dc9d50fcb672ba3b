// HingeLoss: by how much scores miss 1 for the class of the label and -1 for the others, or the squares of that: the
// sum, divided by the batch size. Each item's scores are one vector, whatever its axes.
#include "layers/item_loss.h"

namespace crema {

namespace {

class HingeLossLayer : public ItemLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const ClassAxis items = SetupItems(setup);
    loss_ = {items.outer, items.classes, setup.param().hinge_loss_param().norm() == HingeLossParameter::L2};
    setup.SetFlops(3.0 * static_cast<double>(items.outer * items.classes));
  }

  void Forward(const LayerRun& run) override {
    CheckLabels(run);
    run.ops->HingeLossForward(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->HingeLossBackward(loss_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottoms[1].f32(),
                               run.bottom_grads[0].f32());
  }

 private:
  HingeLoss loss_;
};

}  // namespace

REGISTER_LAYER(HingeLoss, HingeLossLayer, "hinge_loss_param");

}  // namespace crema
