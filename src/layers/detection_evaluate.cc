// DetectionEvaluate: what of the objects that DetectionOutput found is right; the solver makes mean average precisions
// of it. As in SSD's fork of Caffe, but that there name_size_file brings boxes to pixels, and a box of pixels is one
// wider and higher there than its corners lie apart.
#include <cmath>
#include <string>

#include "base/number_text.h"
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class DetectionEvaluateLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const DetectionEvaluateParameter& param = setup.param().detection_evaluate_param();
    objects_ = setup.param().bottom(1);
    evaluation_.found = Rows(setup, 0, DetectionEvaluation::kFound, "what was found", "DetectionOutput");
    evaluation_.objects = Rows(setup, 1, DetectionEvaluation::kObject, "the true objects", "AnnotatedData");
    CheckClasses(setup, param);
    evaluation_.classes = param.num_classes();
    evaluation_.background = param.background_label_id();
    evaluation_.overlap_threshold = param.overlap_threshold();
    if (!(param.overlap_threshold() > 0) || param.overlap_threshold() > 1) {
      setup.Fail(
          "detection_evaluate_param.overlap_threshold",
          "overlap_threshold is " + FormatNumber(param.overlap_threshold()) +
              " but must be above 0 and at most 1: the share of their union from which on two boxes are the same");
    }
    evaluation_.difficult_count = param.evaluate_difficult_gt();
    evaluation_.clip = param.has_name_size_file();
    if (param.has_name_size_file()) {
      setup.Warn("detection_evaluate_param.name_size_file",
                 "name_size_file is not read: boxes are compared as shares of the images, cut off at their borders, "
                 "instead of in pixels, so that overlaps of small boxes differ a little");
    }
    if (param.resize_param().resize_mode() != ResizeParameter::WARP) {
      setup.Fail("detection_evaluate_param.resize_param.resize_mode",
                 "resize_mode " + ResizeParameter::Resize_mode_Name(param.resize_param().resize_mode()) +
                     " is not supported; WARP is");
    }
    setup.MakeNonDifferentiable();
    setup.SetTop(0, {1, 1, evaluation_.results(), DetectionEvaluation::kResult});
  }

  void Plan(LayerPlan& plan) override { plan.Workspace(evaluation_.workspace(), 0); }

  void Forward(const LayerRun& run) override {
    const float* objects = run.bottoms[1].f32();
    const int64_t bad = run.ops->FindBadObject(evaluation_, objects);
    if (bad >= 0) OnBadValue(bad, objects[bad]);
    run.ops->EvaluateDetections(evaluation_, run.bottoms[0].f32(), objects, run.workspace, run.tops[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override {
    const std::string classes = std::to_string(evaluation_.classes);
    const std::string which =
        "object " + std::to_string(position / DetectionEvaluation::kObject) + " of \"" + objects_ + "\" ";
    // The image's number.
    if (!(value >= 0 && value < 1 << 24 && value == std::floor(value))) {
      throw BadItem(1, 0,
                    which + "is of image " + FormatNumber(value, "%.9g") +
                        "; images are numbered from 0, and rows that are no object have -1 there");
    }
    throw BadItem(1, static_cast<int64_t>(value),
                  which + "is of no class that objects may have: num_classes is " + classes + ", and " +
                      std::to_string(evaluation_.background) +
                      " is the background; correct the class, or set num_classes to the number of all classes");
  }

 private:
  static int64_t Rows(const LayerSetup& setup, int bottom, int64_t width, const std::string& what,
                      const std::string& maker) {
    const Shape& shape = setup.bottom_shape(bottom);
    if (shape.axes() == 4 && shape[0] == 1 && shape[1] == 1 && shape[3] == width) return shape[2];
    setup.Fail("bottom", "\"" + setup.param().bottom(bottom) + "\" is " + shape.ToString() + ", but must be " + what +
                             ", 1 x 1 x rows x " + std::to_string(width) + ", as " + maker + " gives them");
  }

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
  std::string objects_;  // name of the bottom, for messages
};

}  // namespace

REGISTER_LAYER(DetectionEvaluate, DetectionEvaluateLayer, "detection_evaluate_param");

}  // namespace crema
