// Accuracy: the share of labels among the top_k highest scores. Tops: the share; optionally the same for each class. As
// in Caffe a score equal to the label's counts as higher, and a batch without counted labels has accuracy 0.
#include "crema/layer.h"
#include "layers/labels.h"
#include "ops/operations.h"

namespace crema {

namespace {

class AccuracyLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1, 2);
    const AccuracyParameter& param = setup.param().accuracy_param();
    const ClassAxis axis(setup.bottom_shape(0), setup.CanonicalAxis("accuracy_param.axis", param.axis()));
    problem_ = {axis, {param.has_ignore_label(), param.ignore_label()}, param.top_k()};
    labels_.Setup(setup, axis, problem_.rule, "accuracy_param");
    if (param.top_k() < 1 || param.top_k() > axis.classes) {
      setup.Fail("accuracy_param.top_k", "top_k " + std::to_string(param.top_k()) + " is outside 1 to " +
                                             std::to_string(problem_.axis.classes) + ", the number of classes of \"" +
                                             setup.param().bottom(0) + "\"");
    }
    has_class_top_ = setup.tops() == 2;
    setup.MakeNonDifferentiable();
    setup.SetTop(0, Shape());
    if (has_class_top_) setup.SetTop(1, {problem_.axis.classes});
  }

  void Plan(LayerPlan& plan) override {
    if (has_class_top_) plan.Workspace(problem_.axis.classes * sizeof(float), 0);
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    run.ops->Accuracy(problem_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32(),
                      has_class_top_ ? run.tops[1].f32() : nullptr, reinterpret_cast<float*>(run.workspace));
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  AccuracyProblem problem_;
  LabelCheck labels_;
  bool has_class_top_ = false;
};

}  // namespace

REGISTER_LAYER(Accuracy, AccuracyLayer, "accuracy_param");

}  // namespace crema
