// SoftmaxWithLoss: softmax along an axis, then the mean of -log(probability of the label). Tops: the loss; optionally
// the probabilities, whose gradient is not propagated.
#include <algorithm>

#include "crema/layer.h"
#include "layers/labels.h"
#include "ops/softmax.h"

namespace crema {

namespace {

class SoftmaxWithLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1, 2);
    const Shape& scores = setup.bottom_shape(0);
    axis_ = ClassAxis(scores, setup.CanonicalAxis("softmax_param.axis", setup.param().softmax_param().axis()));
    CheckLabelShape(setup, axis_);
    const LossParameter& loss = setup.param().loss_param();
    rule_ = {loss.has_ignore_label(), loss.ignore_label()};
    normalization_ = loss.normalization();
    if (!loss.has_normalization() && loss.has_normalize()) {
      normalization_ = loss.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE;
    }
    scores_ = setup.param().bottom(0);
    setup.MakeLoss();
    setup.NoGradient(1);
    setup.SetTop(0, Shape());
    has_probability_top_ = setup.tops() == 2;
    if (has_probability_top_) setup.SetTop(1, scores);
    setup.SetFlops(5.0 * static_cast<double>(scores.count()));
  }

  void Plan(LayerPlan& plan) override {
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
    CheckLabels(run.bottoms[1], axis_, rule_, scores_, "loss_param");
    float* probability = Probability(run);
    SoftmaxForward(axis_, run.bottoms[0].f32(), probability);
    const CrossEntropy sum = CrossEntropyForward(axis_, rule_, probability, run.bottoms[1].f32());
    run.tops[0].f32()[0] = static_cast<float>(sum.loss / Normalizer(sum.counted));
  }

  void Backward(const LayerRun& run) override {
    const float* label = run.bottoms[1].f32();
    const double normalizer = Normalizer(CountLabels(rule_, axis_.positions(), label));
    const float scale = static_cast<float>(run.top_grads[0].f32()[0] / normalizer);
    CrossEntropyBackward(axis_, rule_, scale, Probability(run), label, run.bottom_grads[0].f32());
  }

 private:
  float* Probability(const LayerRun& run) const {
    if (has_probability_top_) return run.tops[1].f32();
    return run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
  }

  double Normalizer(int64_t counted) const {
    int64_t n = 1;
    if (normalization_ == LossParameter::FULL) n = axis_.positions();
    if (normalization_ == LossParameter::VALID) n = counted;
    if (normalization_ == LossParameter::BATCH_SIZE) n = axis_.outer;
    return static_cast<double>(std::max<int64_t>(1, n));  // a batch of ignored labels only has loss 0
  }

  ClassAxis axis_;
  LabelRule rule_;
  LossParameter::NormalizationMode normalization_ = LossParameter::VALID;
  std::string scores_;  // name of bottom 0, for messages
  bool has_probability_top_ = false;
};

}  // namespace

REGISTER_LAYER(SoftmaxWithLoss, SoftmaxWithLossLayer, "loss_param", "softmax_param");

}  // namespace crema
