// SoftmaxWithLoss: softmax along an axis, then the mean of -log(probability of the label). Tops: the loss; optionally
// the probabilities, whose gradient is not propagated.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "layers/labels.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SoftmaxWithLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1, 2);
    const Shape& scores = setup.bottom_shape(0);
    const ClassAxis axis(scores, setup.CanonicalAxis("softmax_param.axis", setup.param().softmax_param().axis()));
    const LossParameter& param = setup.param().loss_param();
    ReadClassWeights(setup, axis.classes);
    loss_ = {axis, ReadLabelRule(param),
             ReadNormalizer(param, LossParameter::VALID, axis.positions(), axis.outer, !class_weights_.empty())};
    labels_.Setup(setup, axis, loss_.rule, "loss_param");
    setup.MakeLoss();
    setup.NoGradient(1);
    setup.SetTop(0, Shape());
    has_probability_top_ = setup.tops() == 2;
    if (has_probability_top_) setup.SetTop(1, scores);
    setup.SetFlops(5.0 * static_cast<double>(scores.count()));
  }

  void Plan(LayerPlan& plan) override {
    if (!class_weights_.empty()) {
      const size_t bytes = class_weights_.size() * sizeof(float);
      Device& device = *plan.context().device;
      weights_on_device_ = Buffer(device, bytes);
      device.CopyIn(class_weights_.data(), weights_on_device_.data(), bytes);
      loss_.class_weight = reinterpret_cast<const float*>(weights_on_device_.data());
    }
    if (plan.backward()) plan.BackwardReadsBottom(1);
    if (has_probability_top_) {
      if (plan.backward()) plan.BackwardReadsTop(1);
    } else if (plan.backward()) {
      plan.Save(plan.bottom(0));
    } else {
      plan.Workspace(plan.bottom(0).bytes(), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    float* probability = Probability(run);
    run.ops->SoftmaxForward(loss_.axis, run.bottoms[0].f32(), probability);
    run.ops->SoftmaxLossForward(loss_, probability, run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->SoftmaxLossBackward(loss_, run.top_grads[0].f32(), Probability(run), run.bottoms[1].f32(),
                                 run.bottom_grads[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  void ReadClassWeights(LayerSetup& setup, int64_t classes) {
    const auto& weights = setup.param().loss_param().class_weight();
    class_weights_.assign(weights.begin(), weights.end());
    if (class_weights_.empty()) return;
    if (static_cast<int64_t>(class_weights_.size()) != classes) {
      setup.Fail("loss_param.class_weight", std::to_string(class_weights_.size()) + " class_weight for " +
                                                std::to_string(classes) + " classes; give one for each class");
    }
    const bool usable = std::all_of(class_weights_.begin(), class_weights_.end(),
                                    [](float weight) { return weight >= 0 && std::isfinite(weight); });
    if (!usable) setup.Fail("loss_param.class_weight", "a class_weight is negative or no number; give 0 or more");
    if (std::all_of(class_weights_.begin(), class_weights_.end(), [](float weight) { return weight == 0; })) {
      setup.Fail("loss_param.class_weight", "every class_weight is 0: nothing would be learnt; weigh some class");
    }
  }

  float* Probability(const LayerRun& run) const {
    if (has_probability_top_) return run.tops[1].f32();
    return run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
  }

  SoftmaxLoss loss_;
  std::vector<float> class_weights_;
  Buffer weights_on_device_;
  LabelCheck labels_;
  bool has_probability_top_ = false;
};

}  // namespace

REGISTER_LAYER(SoftmaxWithLoss, SoftmaxWithLossLayer, "loss_param", "softmax_param");

}  // namespace crema
