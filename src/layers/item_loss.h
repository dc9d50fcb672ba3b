// Losses of items of one class each.
#ifndef CREMA_LAYERS_ITEM_LOSS_H_
#define CREMA_LAYERS_ITEM_LOSS_H_

#include "crema/layer.h"
#include "layers/labels.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

// Bottoms: a number for each class, each item's as one vector, whatever its axes; and a label for each item.
class ItemLossLayer : public Layer {
 public:
  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    plan.BackwardReadsBottom(0);
    plan.BackwardReadsBottom(1);
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 protected:
  // Setup but for what is counted; returns the items and their classes.
  ClassAxis SetupItems(LayerSetup& setup) {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const ClassAxis items = ItemsAsRows(setup.bottom_shape(0));
    labels_.Setup(setup, items);
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.NoGradient(1);
    return items;
  }

  // First in Forward: looks for labels that are no class.
  void CheckLabels(const LayerRun& run) const { labels_.Run(run); }

 private:
  LabelCheck labels_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_ITEM_LOSS_H_
