// HingeLoss: by how much scores miss 1 for the class of the label and -1 for the others, or the squares of that: the
// sum, divided by the batch size. Each item's scores are one vector, whatever its axes.
#include "crema/layer.h"
#include "layers/labels.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class HingeLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const ClassAxis rows = ItemsAsRows(setup.bottom_shape(0));
    labels_.Setup(setup, rows);
    loss_ = {rows.outer, rows.classes, setup.param().hinge_loss_param().norm() == HingeLossParameter::L2};
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.NoGradient(1);
    setup.SetFlops(3.0 * static_cast<double>(rows.outer * rows.classes));
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    plan.BackwardReadsBottom(0);
    plan.BackwardReadsBottom(1);
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    run.ops->HingeLossForward(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->HingeLossBackward(loss_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottoms[1].f32(),
                               run.bottom_grads[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  HingeLoss loss_;
  LabelCheck labels_;
};

}  // namespace

REGISTER_LAYER(HingeLoss, HingeLossLayer, "hinge_loss_param");

}  // namespace crema
