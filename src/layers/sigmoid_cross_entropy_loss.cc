// SigmoidCrossEntropyLoss: the cross-entropy of each target, a probability, with the sigmoid of its score. As in Caffe
// the sum is divided by the batch size where the file does not say by what. A third bottom, as forks have it, holds
// what the terms are multiplied by. With class_balanced it is the loss of HED (Xie and Tu, "Holistically-Nested Edge
// Detection", 2015), whose fork gives the type that meaning.

#include "crema/layer.h"
#include "layers/field_range.h"
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
    const int64_t batch = BatchOf(scores);
    loss_ = {ReadLabelRule(param),
             ReadNormalizer(setup, LossParameter::BATCH_SIZE, scores.count(), batch, param.class_balanced())};
    ReadBalance(setup, batch);
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
      plan.Save({Shape{TapeFloats()}});
    } else {
      plan.Workspace(TapeFloats() * sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    run.ops->SigmoidLossForward(loss_, Inputs(run), Tape(run), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->SigmoidLossBackward(loss_, run.top_grads[0].f32(), Tape(run), Inputs(run), run.bottom_grads[0]);
  }

 private:
  void ReadBalance(LayerSetup& setup, int64_t batch) {
    const LossParameter& param = setup.param().loss_param();
    const float weight = param.negative_weight();
    if (param.has_negative_weight() && !param.class_balanced()) {
      setup.Fail("loss_param.negative_weight",
                 "negative_weight needs class_balanced: true; a third bottom weighs each target by itself");
    }
    ReadInRange(setup, "loss_param.negative_weight", weight, kPositive,
                "targets of 0 weigh so much beside those of 1: 1 in HED, 1.1 in RCF");
    if (!param.class_balanced()) return;
    loss_.balanced_items = batch;
    loss_.negative_weight = weight;
  }

  // What the sum is divided by, then the balance of each item.
  int64_t TapeFloats() const { return 1 + 2 * loss_.balanced_items; }
  SigmoidTape Tape(const LayerRun& run) const {
    float* const floats = run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
    static_assert(sizeof(SigmoidBalance) == 2 * sizeof(float));
    return {floats, loss_.balanced_items > 0 ? reinterpret_cast<SigmoidBalance*>(floats + 1) : nullptr};
  }

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
