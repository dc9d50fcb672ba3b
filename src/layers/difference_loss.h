// Losses that are a function of the differences of two bottoms.
#ifndef CREMA_LAYERS_DIFFERENCE_LOSS_H_
#define CREMA_LAYERS_DIFFERENCE_LOSS_H_

#include "crema/layer.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

// Bottoms: values, targets, and where there are more, weights (DifferenceInputs).
class DifferenceLossLayer : public Layer {
 public:
  void Plan(LayerPlan& plan) override {
    for (int i = 0; i < bottoms_ && plan.backward(); ++i) plan.BackwardReadsBottom(i);
  }

  void Forward(const LayerRun& run) override { run.ops->DifferenceLossForward(loss_, Inputs(run), run.tops[0].f32()); }

  void Backward(const LayerRun& run) override {
    run.ops->DifferenceLossBackward(loss_, run.top_grads[0].f32(), Inputs(run), run.bottom_grads[0],
                                    run.bottom_grads[1]);
  }

 protected:
  // Setup, when the number of bottoms is known to be right.
  void SetupDifference(LayerSetup& setup, float sharpness, float limit) {
    setup.ExpectTops(1);
    bottoms_ = setup.bottoms();
    for (int i = 1; i < bottoms_; ++i) ExpectSameItems(setup, i);
    for (int i = 2; i < bottoms_; ++i) setup.NoGradient(i);
    const Shape& values = setup.bottom_shape(0);
    loss_ = {sharpness, limit, static_cast<double>(BatchOf(values))};
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    if (AllBottomsAlike(setup)) setup.AllowChannelsLast();
    setup.SetFlops((1.0 + bottoms_) * static_cast<double>(values.count()));
  }

 private:
  DifferenceInputs Inputs(const LayerRun& run) const {
    DifferenceInputs inputs = {run.bottoms[0], run.bottoms[1], {}, {}};
    if (bottoms_ > 2) inputs.inside = run.bottoms[2];
    if (bottoms_ > 3) inputs.outside = run.bottoms[3];
    return inputs;
  }

  DifferenceLoss loss_;
  int bottoms_ = 2;
};

}  // namespace crema

#endif  // CREMA_LAYERS_DIFFERENCE_LOSS_H_
