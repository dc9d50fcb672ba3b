// SigmoidCrossEntropyLoss: the cross-entropy of each target, a probability, with the sigmoid of its score. As in Caffe
// the sum is divided by the batch size where the file does not say by what. A third bottom, as forks have it, holds
// what the terms are multiplied by.
#include "crema/layer.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SigmoidCrossEntropyLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2, 3);
    setup.ExpectTops(1);
    ExpectSameItems(setup, 1);
    RefuseSoftmaxSettings(setup);
    const Shape& scores = setup.bottom_shape(0);
    const LossParameter& param = setup.param().loss_param();
    loss_ = {ReadLabelRule(param), ReadNormalizer(setup, LossParameter::BATCH_SIZE, scores.count(), BatchOf(scores))};
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.NoGradient(1);
    if (setup.bottoms() == 3) elements_of_weight_ = ElementsOfWeight(setup, 2, scores.count(), "score");
    if (AllBottomsAlike(setup)) setup.AllowChannelsLast();
    setup.SetFlops(30.0 * static_cast<double>(scores.count()));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) {
      for (int i = 0; i < (elements_of_weight_ > 0 ? 3 : 2); ++i) plan.BackwardReadsBottom(i);
      plan.Save({Shape{1}});  // what the sum was divided by
    } else {
      plan.Workspace(sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    float* normalizer = run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
    run.ops->SigmoidLossForward(loss_, Inputs(run), normalizer, run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->SigmoidLossBackward(loss_, run.top_grads[0].f32(), run.saved[0].f32(), Inputs(run), run.bottom_grads[0]);
  }

 private:
  SigmoidInputs Inputs(const LayerRun& run) const {
    SigmoidInputs inputs = {run.bottoms[0], run.bottoms[1]};
    if (elements_of_weight_ > 0) inputs.weights = {run.bottoms[2].f32(), elements_of_weight_};
    return inputs;
  }

  SigmoidLoss loss_;
  int64_t elements_of_weight_ = 0;  // 0: no bottom holds weights
};

}  // namespace

REGISTER_LAYER(SigmoidCrossEntropyLoss, SigmoidCrossEntropyLossLayer, "loss_param");

}  // namespace crema
