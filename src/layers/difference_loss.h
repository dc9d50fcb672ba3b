// Losses that are a function of the differences of two bottoms.
#ifndef CREMA_LAYERS_DIFFERENCE_LOSS_H_
#define CREMA_LAYERS_DIFFERENCE_LOSS_H_

#include "crema/layer.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

// Bottoms: values, targets, and where there are more, weights (DifferenceInputs): inside and outside, or, with
// WeighElements, those of what comes of the differences.
class DifferenceLossLayer : public Layer {
 public:
  void Plan(LayerPlan& plan) override {
    for (int i = 0; i < bottoms_ && plan.backward(); ++i) plan.BackwardReadsBottom(i);
  }

  void Forward(const LayerRun& run) override {
    run.ops->DifferenceLossForward(loss_, Inputs(run), run.tops[0].f32());
    if (has_place_top_) run.ops->DifferenceLossTerms(loss_, channels_, Inputs(run), run.tops[1].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->DifferenceLossBackward(loss_, run.top_grads[0].f32(), Inputs(run), run.bottom_grads[0],
                                    run.bottom_grads[1]);
  }

 protected:
  // Before the functions below: bottom 2 has a weight for each so many elements.
  void WeighElements(int64_t elements_of_weight) { elements_of_weight_ = elements_of_weight; }

  // Setup, when the number of bottoms is known to be right. The sum is divided by the batch size.
  void SetupDifference(LayerSetup& setup, float sharpness, float limit) {
    setup.ExpectTops(1);
    SetupLoss(setup, {sharpness, limit, static_cast<double>(BatchOf(setup.bottom_shape(0)))});
    if (AllBottomsAlike(setup)) setup.AllowChannelsLast();
  }

  // The same with a divisor of its own, and with a second top for what each place adds to the sum, over the channels,
  // axis 1.
  void SetupDifferenceOfPlaces(LayerSetup& setup, const DifferenceLoss& loss) {
    setup.ExpectTops(1, 2);
    SetupLoss(setup, loss);
    has_place_top_ = setup.tops() == 2;
    if (!has_place_top_) return;
    Shape places = setup.bottom_shape(0);
    channels_ = ClassAxis(places, 1);
    places.set(1, 1);
    setup.SetTop(1, places);
  }

 private:
  void SetupLoss(LayerSetup& setup, const DifferenceLoss& loss) {
    bottoms_ = setup.bottoms();
    const int alike = elements_of_weight_ > 0 ? 2 : bottoms_;
    for (int i = 1; i < alike; ++i) ExpectSameItems(setup, i);
    for (int i = 2; i < bottoms_; ++i) setup.NoGradient(i);
    loss_ = loss;
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.SetFlops((1.0 + bottoms_) * static_cast<double>(setup.bottom_shape(0).count()));
  }

  DifferenceInputs Inputs(const LayerRun& run) const {
    DifferenceInputs inputs = {run.bottoms[0], run.bottoms[1], {}, {}};
    if (elements_of_weight_ > 0) {
      inputs.weights = {run.bottoms[2].f32(), elements_of_weight_};
      return inputs;
    }
    if (bottoms_ > 2) inputs.inside = run.bottoms[2];
    if (bottoms_ > 3) inputs.outside = run.bottoms[3];
    return inputs;
  }

  DifferenceLoss loss_;
  int bottoms_ = 2;
  int64_t elements_of_weight_ = 0;  // 0: no bottom holds such weights
  bool has_place_top_ = false;
  ClassAxis channels_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_DIFFERENCE_LOSS_H_
