// MultinomialLogisticLoss: the mean of -log(probability of the label) of probabilities that another layer made. Each
// item's probabilities are one vector, whatever its axes.
#include "layers/item_loss.h"

namespace crema {

namespace {

class MultinomialLogisticLossLayer : public ItemLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const ClassAxis items = SetupItems(setup);
    loss_ = {items.outer, items.classes};
    setup.SetFlops(20.0 * static_cast<double>(items.outer));
  }

  void Forward(const LayerRun& run) override {
    CheckLabels(run);
    run.ops->LogLossForward(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->LogLossBackward(loss_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottoms[1].f32(),
                             run.bottom_grads[0].f32());
  }

 private:
  LogLoss loss_;
};

}  // namespace

REGISTER_LAYER(MultinomialLogisticLoss, MultinomialLogisticLossLayer);

}  // namespace crema
