// Accuracy: the share of labels among the top_k highest scores. Tops: the share; optionally the same for each class. As
// in Caffe a score equal to the label's counts as higher, and a batch without counted labels has accuracy 0.
#include "crema/layer.h"
#include "layers/labels.h"
#include "ops/softmax.h"
#include "ops/vector_math.h"

namespace crema {

namespace {

class AccuracyLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1, 2);
    const AccuracyParameter& param = setup.param().accuracy_param();
    axis_ = ClassAxis(setup.bottom_shape(0), setup.CanonicalAxis("accuracy_param.axis", param.axis()));
    CheckLabelShape(setup, axis_);
    if (param.top_k() < 1 || param.top_k() > axis_.classes) {
      setup.Fail("accuracy_param.top_k", "top_k " + std::to_string(param.top_k()) + " is outside 1 to " +
                                             std::to_string(axis_.classes) + ", the number of classes of \"" +
                                             setup.param().bottom(0) + "\"");
    }
    top_k_ = param.top_k();
    rule_ = {param.has_ignore_label(), param.ignore_label()};
    scores_ = setup.param().bottom(0);
    has_class_top_ = setup.tops() == 2;
    setup.MakeNonDifferentiable();
    setup.SetTop(0, Shape());
    if (has_class_top_) setup.SetTop(1, {axis_.classes});
  }

  void Plan(LayerPlan& plan) override {
    if (has_class_top_) plan.Workspace(axis_.classes * sizeof(float), 0);
  }

  void Forward(const LayerRun& run) override {
    CheckLabels(run.bottoms[1], axis_, rule_, scores_, "accuracy_param");
    const float *scores = run.bottoms[0].f32(), *label = run.bottoms[1].f32();
    float* of_class = has_class_top_ ? run.tops[1].f32() : nullptr;
    float* labels_of_class = reinterpret_cast<float*>(run.workspace);
    if (has_class_top_) {
      Fill(axis_.classes, 0, of_class);
      Fill(axis_.classes, 0, labels_of_class);
    }
    int64_t right = 0, counted = 0;
    for (int64_t i = 0; i < axis_.positions(); ++i) {
      if (rule_.has_ignore && label[i] == static_cast<float>(rule_.ignore)) continue;
      const int64_t expected = static_cast<int64_t>(label[i]);
      const bool found = IsAmongTop(scores + i / axis_.inner * axis_.classes * axis_.inner + i % axis_.inner, expected);
      right += found;
      ++counted;
      if (has_class_top_) {
        labels_of_class[expected] += 1;
        if (found) of_class[expected] += 1;
      }
    }
    run.tops[0].f32()[0] = counted == 0 ? 0.0f : static_cast<float>(right) / static_cast<float>(counted);
    if (!has_class_top_) return;
    for (int64_t c = 0; c < axis_.classes; ++c) of_class[c] /= labels_of_class[c] > 0 ? labels_of_class[c] : 1.0f;
  }

 private:
  // `score`: of class 0 at one position.
  bool IsAmongTop(const float* score, int64_t expected) const {
    const float own = score[expected * axis_.inner];
    int64_t others = -1;  // its own score is found, too
    for (int64_t c = 0; c < axis_.classes && others < top_k_; ++c) {
      others += !(score[c * axis_.inner] < own);  // so that a NaN is never right
    }
    return others < top_k_;
  }

  ClassAxis axis_;
  LabelRule rule_;
  int64_t top_k_ = 1;
  std::string scores_;  // name of bottom 0, for messages
  bool has_class_top_ = false;
};

}  // namespace

REGISTER_LAYER(Accuracy, AccuracyLayer, "accuracy_param");

}  // namespace crema
