// DetectionEvaluate: what of the objects that DetectionOutput found is right; the solver makes mean average precisions
// of it. As in SSD's fork of Caffe, but that there name_size_file brings boxes to pixels, and a box of pixels is one
// wider and higher there than its corners lie apart.
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/object_check.h"
#include "ops/operations.h"

namespace crema {

namespace {

class DetectionEvaluateLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const DetectionEvaluateParameter& param = setup.param().detection_evaluate_param();
    evaluation_.found = ExpectRows(setup, 0, DetectionEvaluation::kFound, "what was found", "DetectionOutput");
    evaluation_.objects = TrueObjectRows(setup, 1);
    CheckClasses(setup, param);
    evaluation_.classes = param.num_classes();
    evaluation_.background = param.background_label_id();
    object_check_.Setup(setup, 1,
                        {evaluation_.objects, ObjectRows::kAnyImage, evaluation_.classes, evaluation_.background});
    evaluation_.overlap_threshold =
        ReadInRange(setup, "detection_evaluate_param.overlap_threshold", param.overlap_threshold(), kPositiveFraction,
                    "it is the share of their union from which on two boxes are the same");
    evaluation_.difficult_count = param.evaluate_difficult_gt();
    evaluation_.clip = param.has_name_size_file();
    if (param.has_name_size_file()) {
      setup.Warn("detection_evaluate_param.name_size_file",
                 "name_size_file is not read: boxes are compared as shares of the images, cut off at their borders, "
                 "instead of in pixels, so that overlaps of small boxes differ a little");
    }
    if (param.resize_param().resize_mode() == ResizeParameter::FIT_SMALL_SIZE) {
      setup.Fail("detection_evaluate_param.resize_param.resize_mode",
                 "resize_mode FIT_SMALL_SIZE is not supported; WARP and FIT_LARGE_SIZE_AND_PAD are");
    }
    setup.MakeNonDifferentiable();
    setup.SetTop(0, {1, 1, evaluation_.results(), DetectionEvaluation::kResult});
  }

  void Plan(LayerPlan& plan) override { plan.Workspace(evaluation_.workspace(), 0); }

  void Forward(const LayerRun& run) override {
    object_check_.Run(run);
    run.ops->EvaluateDetections(evaluation_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.workspace,
                                run.tops[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override { object_check_.Refuse(position, value); }

 private:
  static void CheckClasses(const LayerSetup& setup, const DetectionEvaluateParameter& param) {
    if (param.num_classes() < 2 || param.num_classes() > 1 << 24) {
      setup.Fail(param.has_num_classes() ? "detection_evaluate_param.num_classes" : "detection_evaluate_param",
                 "num_classes must be in [2, 16777216]; it counts the background, too");
    }
    if (param.background_label_id() >= param.num_classes()) {
      setup.Fail("detection_evaluate_param.background_label_id",
                 "background_label_id " + std::to_string(param.background_label_id()) + " is outside 0 to " +
                     std::to_string(param.num_classes() - 1) + ", the classes");
    }
  }

  DetectionEvaluation evaluation_;
  ObjectCheck object_check_;
};

}  // namespace

REGISTER_LAYER(DetectionEvaluate, DetectionEvaluateLayer, "detection_evaluate_param");

}  // namespace crema
