// MultinomialLogisticLoss: the mean of -log(probability of the label) of probabilities that another layer made. Each
// item's probabilities are one vector, whatever its axes.
#include "crema/layer.h"
#include "layers/labels.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class MultinomialLogisticLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const ClassAxis rows = ItemsAsRows(setup.bottom_shape(0));
    labels_.Setup(setup, rows);
    loss_ = {rows.outer, rows.classes};
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.NoGradient(1);
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    plan.BackwardReadsBottom(0);
    plan.BackwardReadsBottom(1);
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    run.ops->LogLossForward(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->LogLossBackward(loss_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottoms[1].f32(),
                             run.bottom_grads[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  LogLoss loss_;
  LabelCheck labels_;
};

}  // namespace

REGISTER_LAYER(MultinomialLogisticLoss, MultinomialLogisticLossLayer);

}  // namespace crema
