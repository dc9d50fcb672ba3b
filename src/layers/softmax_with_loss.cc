// SoftmaxWithLoss: softmax along an axis, then the mean of -log(probability of the label), or of its products with soft
// targets. A third bottom, as forks have it, holds what the loss of each place is multiplied by. Tops: the loss;
// optionally the probabilities, and the loss of each place before it is divided, whose gradients are not propagated.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "crema/layer.h"
#include "device/device.h"
#include "layers/field_range.h"
#include "layers/labels.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SoftmaxWithLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2, 3);
    setup.ExpectTops(1, 3);
    const Shape& scores = setup.bottom_shape(0);
    const int class_axis = setup.CanonicalAxis("softmax_param.axis", setup.param().softmax_param().axis());
    const ClassAxis axis(scores, class_axis);
    if (setup.param().softmax_param().causal()) {
      setup.Fail("softmax_param.causal", "causal is for Softmax; a loss takes all classes");
    }
    const LossParameter& param = setup.param().loss_param();
    RefuseBalance(setup);
    loss_ = {axis, ReadLabelRule(param)};
    ReadClassWeights(setup);
    const bool weighted = !class_weights_.empty() && !loss_.divides_by_labels;
    loss_.normalizer = ReadNormalizer(setup, unset_normalization(), axis.positions(), axis.outer, weighted);
    loss_.smoothing = ReadInRange(setup, "loss_param.label_smoothing", param.label_smoothing(), kFraction,
                                  "it is the share of all classes together");
    ReadFocus(setup);
    if (loss_.focal_gamma > 0 && loss_.smoothing > 0) {
      setup.Fail(gamma_field_,
                 gamma_name() +
                     " and label_smoothing are both set, and focal loss has one class to be right about; keep "
                     "one of them");
    }
    soft_ = HoldsTargets(setup, axis);
    if (soft_) {
      CheckForTargets(setup);
    } else {
      labels_.Setup(setup, axis, loss_.rule, "loss_param");
    }
    if (setup.bottoms() == 3) ReadPlaceWeights(setup, class_axis);
    setup.MakeLoss();
    setup.NoGradient(1);
    setup.SetTop(0, Shape());
    has_probability_top_ = setup.tops() >= 2;
    if (has_probability_top_) setup.SetTop(1, scores);
    has_place_top_ = setup.tops() == 3;
    if (has_place_top_) {
      Shape places = scores;
      places.set(class_axis, 1);
      setup.SetTop(2, places);
    }
    setup.SetFlops(5.0 * static_cast<double>(scores.count()));
  }

  void Plan(LayerPlan& plan) override {
    weights_on_device_.Upload(*plan.context().device, class_weights_);
    loss_.class_weight = weights_on_device_.data();
    for (int i = 1; i < (weighs_places_ ? 3 : 2) && plan.backward(); ++i) plan.BackwardReadsBottom(i);
    if (has_probability_top_) {
      if (plan.backward()) plan.BackwardReadsTop(1);
    } else if (plan.backward()) {
      plan.Save(plan.bottom(0));
    } else {
      plan.Workspace(plan.bottom(0).bytes(), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    float* const probability = Probability(run);
    const float* const wanted = run.bottoms[1].f32();
    const SoftmaxLoss loss = LossOf(run);
    if (soft_) {
      const int64_t bad = run.ops->FindBadTarget(run.bottoms[1].count(), wanted);
      if (bad >= 0) RefuseTarget(bad, wanted[bad]);
    } else {
      labels_.Run(run);
    }
    run.ops->SoftmaxForward(loss_.axis, run.bottoms[0].f32(), probability);
    if (soft_) {
      run.ops->SoftTargetLossForward(loss, probability, wanted, run.tops[0].f32());
      if (has_place_top_) run.ops->SoftTargetLossTerms(loss, probability, wanted, run.tops[2].f32());
    } else {
      run.ops->SoftmaxLossForward(loss, probability, wanted, run.tops[0].f32());
      if (has_place_top_) run.ops->SoftmaxLossTerms(loss, probability, wanted, run.tops[2].f32());
    }
  }

  void Backward(const LayerRun& run) override {
    const float *const factor = run.top_grads[0].f32(), *const wanted = run.bottoms[1].f32();
    float* const dx = run.bottom_grads[0].f32();
    const SoftmaxLoss loss = LossOf(run);
    if (soft_) {
      run.ops->SoftTargetLossBackward(loss, factor, Probability(run), wanted, dx);
    } else {
      run.ops->SoftmaxLossBackward(loss, factor, Probability(run), wanted, dx);
    }
  }

  void OnBadValue(int64_t position, float value) const override {
    if (soft_) RefuseTarget(position, value);
    labels_.Refuse(position, value);
  }

 protected:
  // What is divided by where the file does not say.
  virtual LossParameter::NormalizationMode unset_normalization() const { return LossParameter::VALID; }
  // Sets how places count, after the weights of classes are known.
  virtual void ReadFocus(LayerSetup& setup) {
    SetGamma(setup, "loss_param.focal_gamma", setup.param().loss_param().focal_gamma());
  }

  void SetGamma(const LayerSetup& setup, const std::string& field, float gamma) {
    gamma_field_ = field;
    loss_.focal_gamma = ReadInRange(setup, field, gamma, kNotNegative, "2 is usual");
  }

  std::string gamma_name() const { return gamma_field_.substr(gamma_field_.find('.') + 1); }
  bool weighs_classes() const { return !class_weights_.empty(); }
  // All classes alike, which does not change what the sum is divided by.
  void WeighPlaces(float weight) {
    class_weights_.assign(static_cast<size_t>(loss_.axis.classes), weight);
    loss_.divides_by_labels = true;
  }

 private:
  // Whether bottom 1 holds a share of each class in place of labels: it has the shape of the scores, but for axes of
  // extent 1 at its end. With one class it holds labels.
  static bool HoldsTargets(const LayerSetup& setup, const ClassAxis& axis) {
    const Shape &scores = setup.bottom_shape(0), &targets = setup.bottom_shape(1);
    if (axis.classes < 2 || targets.count() != scores.count()) return false;
    for (int i = 0; i < std::max(scores.axes(), targets.axes()); ++i) {
      if ((i < scores.axes() ? scores[i] : 1) == (i < targets.axes() ? targets[i] : 1)) continue;
      setup.Fail("bottom", setup.DescribeBottom(1) + " holds as many numbers as the scores " + setup.DescribeBottom(0) +
                               ", a share of each class, but has another shape; bring it into theirs");
    }
    return true;
  }

  void ReadPlaceWeights(LayerSetup& setup, int class_axis) {
    if (class_axis == 0) {
      setup.Fail(
          "softmax_param.axis",
          "axis 0 runs over the classes, so that there are no items to weigh; bring the classes to another axis, "
          "or remove the third bottom");
    }
    loss_.weights.elements = ElementsOfWeight(setup, 2, loss_.axis.positions(), "label");
    weighs_places_ = true;
  }

  SoftmaxLoss LossOf(const LayerRun& run) const {
    SoftmaxLoss loss = loss_;
    if (weighs_places_) loss.weights.data = run.bottoms[2].f32();
    return loss;
  }

  void CheckForTargets(const LayerSetup& setup) {
    const std::string targets = setup.DescribeBottom(1) + " holds a share of each class, not labels";
    if (loss_.rule.has_ignore) {
      setup.Fail("loss_param.ignore_label", "there is no label to ignore, since " + targets +
                                                "; remove ignore_label, and give zeros as targets of places that do "
                                                "not count");
    }
    if (loss_.focal_gamma > 0) {
      setup.Fail(gamma_field_, "focal loss has one class to be right about, but " + targets + "; give labels, or " +
                                   gamma_name() + ": 0");
    }
    scores_ = "\"" + setup.param().bottom(0) + "\"";
    targets_of_item_ = std::max<int64_t>(1, setup.bottom_shape(1).count(1));
  }

  [[noreturn]] void RefuseTarget(int64_t position, float value) const {
    const int64_t c = position / loss_.axis.inner % loss_.axis.classes;
    throw BadItem(1, position / targets_of_item_,
                  "target " + FormatNumber(value, "%.9g") + " of class " + std::to_string(c) + " is " +
                      (value < 0 && std::isfinite(value) ? "negative" : "not finite") +
                      "; targets are shares of the classes of " + scores_ +
                      ", 0 or more, as Softmax and MixUp give them");
  }

  // Of class_weight, or of SegNet's class_weighting.
  void ReadClassWeights(LayerSetup& setup) {
    const LossParameter& param = setup.param().loss_param();
    loss_.divides_by_labels = param.weight_by_label_freqs();
    if (param.class_weighting_size() > 0 && param.class_weight_size() > 0) {
      setup.Fail("loss_param.class_weighting", "class_weight and class_weighting are both set; keep one of them");
    }
    if (param.weight_by_label_freqs() && param.class_weighting_size() == 0) {
      setup.Fail("loss_param.weight_by_label_freqs",
                 "weight_by_label_freqs needs class_weighting, one number for each class" +
                     std::string(param.class_weight_size() > 0 ? "; remove it for class_weight alone" : ""));
    }
    if (param.class_weighting_size() > 0 && !param.weight_by_label_freqs()) {
      setup.Warn("loss_param.class_weighting",
                 "class_weighting has no effect without weight_by_label_freqs: true, as in SegNet");
    }
    const std::string name = loss_.divides_by_labels ? "class_weighting" : "class_weight", field = "loss_param." + name;
    const auto& weights = loss_.divides_by_labels ? param.class_weighting() : param.class_weight();
    class_weights_.assign(weights.begin(), weights.end());
    if (class_weights_.empty()) return;
    const int64_t classes = loss_.axis.classes;
    if (static_cast<int64_t>(class_weights_.size()) != classes) {
      setup.Fail(field, std::to_string(class_weights_.size()) + " " + name + " for " + std::to_string(classes) +
                            " classes; give one for each class");
    }
    for (const float weight : class_weights_) ReadInRange(setup, field, weight, kNotNegative);
    if (std::all_of(class_weights_.begin(), class_weights_.end(), [](float weight) { return weight == 0; })) {
      setup.Fail(field, "every " + name + " is 0: nothing would be learnt; weigh some class");
    }
  }

  float* Probability(const LayerRun& run) const {
    if (has_probability_top_) return run.tops[1].f32();
    return run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
  }

  SoftmaxLoss loss_;
  std::vector<float> class_weights_;
  DeviceTable<float> weights_on_device_;
  LabelCheck labels_;
  bool soft_ = false;           // bottom 1 holds targets
  bool weighs_places_ = false;  // as bottom 2 says
  int64_t targets_of_item_ = 1;
  std::string gamma_field_;
  std::string scores_;  // whose classes they are, for messages
  bool has_probability_top_ = false, has_place_top_ = false;
};

// The same of forks, which weigh all places by alpha, too.
class FocalLossLayer : public SoftmaxWithLossLayer {
 protected:
  void ReadFocus(LayerSetup& setup) override {
    const FocalLossParameter& param = setup.param().focal_loss_param();
    if (param.type() != FocalLossParameter::ORIGIN) {
      setup.Fail("focal_loss_param.type", "type: LINEAR, the second form in the paper, is not supported; remove it");
    }
    if (param.has_beta()) {
      setup.Warn("focal_loss_param.beta", "beta has no effect without type: LINEAR; remove it");
    }
    if (setup.param().loss_param().focal_gamma() != 0) {
      setup.Fail("loss_param.focal_gamma", "focal_gamma is of SoftmaxWithLoss; give gamma in focal_loss_param");
    }
    if (weighs_classes()) {
      setup.Fail("loss_param",
                 "weights of classes are of SoftmaxWithLoss, here alpha weighs all of them; take type: "
                 "\"SoftmaxWithLoss\" with class_weight and focal_gamma");
    }
    SetGamma(setup, "focal_loss_param.gamma", param.gamma());
    WeighPlaces(
        ReadInRange(setup, "focal_loss_param.alpha", param.alpha(), kPositive, "all places are multiplied by it"));
  }
};

// The same by its name in forks where it has soft targets, divided by the batch size where the file does not say by
// what.
class SoftmaxCrossEntropyLossLayer : public SoftmaxWithLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    if (setup.bottoms() >= 2 && setup.bottom_shape(1).count() != setup.bottom_shape(0).count()) {
      setup.Fail("bottom", setup.BottomIs(0) + ", but " + setup.BottomIs(1) + "; " + setup.param().type() +
                               " takes a share of each class; labels are for SoftmaxWithLoss");
    }
    SoftmaxWithLossLayer::Setup(setup);
  }

 protected:
  LossParameter::NormalizationMode unset_normalization() const override { return LossParameter::BATCH_SIZE; }
};

// The same by its name in forks that have the third bottom.
class WeightedSoftmaxWithLossLayer : public SoftmaxWithLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    if (setup.bottoms() == 2) {
      setup.Fail("bottom",
                 "the third bottom is missing, a weight for each item or label; to weigh classes, take type: "
                 "\"SoftmaxWithLoss\" with loss_param { weight_by_label_freqs: true class_weighting: ... }, one number "
                 "for each class");
    }
    SoftmaxWithLossLayer::Setup(setup);
  }
};

}  // namespace

REGISTER_LAYER(SoftmaxWithLoss, SoftmaxWithLossLayer, "loss_param", "softmax_param");
// R-FCN's fork has the third top in a type of its own.
REGISTER_LAYER(SoftmaxWithLossOHEM, SoftmaxWithLossLayer, "loss_param", "softmax_param");
REGISTER_LAYER(SoftmaxCrossEntropyLoss, SoftmaxCrossEntropyLossLayer, "loss_param", "softmax_param");
REGISTER_LAYER(WeightedSoftmaxWithLoss, WeightedSoftmaxWithLossLayer, "loss_param", "softmax_param");
REGISTER_LAYER(FocalLoss, FocalLossLayer, "focal_loss_param", "loss_param", "softmax_param");
REGISTER_LAYER(SoftmaxFocalLoss, FocalLossLayer, "focal_loss_param", "loss_param", "softmax_param");

}  // namespace crema
