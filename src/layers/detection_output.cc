// DetectionOutput: the objects that a detector found (Liu et al., "SSD: Single Shot MultiBox Detector", 2016; Ren et
// al., "Faster R-CNN", 2015). The top has room for as many as there can be; rows that are left over hold -1.
#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <string>

#include "layers/anchors.h"
#include "layers/box_variance.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

namespace {

class DetectionOutputLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(3, 4);
    setup.ExpectTops(1);
    setup.MakeNonDifferentiable();
    const DetectionOutputParameter& param = setup.param().detection_output_param();
    problem_.from_regions = setup.param().bottom_size() == 4;
    ReadClasses(setup);
    if (problem_.from_regions) {
      CheckRegions(setup);
      ReadVariance(setup);
    } else {
      CheckPriors(setup);
      ReadCode(setup);
    }
    ReadSuppression(setup);
    RefuseFiles(setup);
    problem_.score_above = param.has_confidence_threshold() ? param.confidence_threshold() : -FLT_MAX;
    ReadInRange(setup, Field("confidence_threshold"), problem_.score_above, kFinite, "0.01 is usual");
    setup.SetTop(0, {1, 1, problem_.rows(), kObjectNumbers});
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(OperationsOf(*plan.context().device).DetectionWorkspace(problem_), 0);
  }

  void Forward(const LayerRun& run) override {
    DetectionInputs inputs = {run.bottoms[0].f32(), run.bottoms[1].f32(), run.bottoms[2].f32()};
    if (problem_.from_regions) inputs.info = run.bottoms[3].f32();
    run.ops->DetectObjects(problem_, inputs, run.tops[0].f32(), run.workspace);
  }

 private:
  static std::string Field(const std::string& name) { return "detection_output_param." + name; }

  void ReadClasses(const LayerSetup& setup) {
    const DetectionOutputParameter& param = setup.param().detection_output_param();
    if (param.num_classes() < 1 || param.num_classes() > INT32_MAX) {
      setup.Fail(param.has_num_classes() ? Field("num_classes") : "detection_output_param",
                 "num_classes must be 1 or more; it is how many classes have scores, the background among them");
    }
    problem_.classes = param.num_classes();
    problem_.background = param.background_label_id();
    if (problem_.background < -1 || problem_.background >= problem_.classes) {
      setup.Fail(Field("background_label_id"), "background_label_id is " + std::to_string(problem_.background) +
                                                   ", but classes are 0 to " + std::to_string(problem_.classes - 1) +
                                                   "; say -1 where none of them is the background");
    }
  }

  void CheckPriors(const LayerSetup& setup) {
    const Shape &offsets = setup.bottom_shape(0), &scores = setup.bottom_shape(1), &priors = setup.bottom_shape(2);
    if (priors.axes() == 2 && priors[1] == kRegionNumbers) {
      setup.Fail("bottom", "bottom 2, " + setup.DescribeBottom(2) +
                               ", holds regions, so that a fourth bottom must be im_info: height and width of each "
                               "image, and what it was scaled by");
    }
    if (priors.axes() != 3 || priors[0] != 1 || priors[1] != 2 || priors[2] % 4 != 0 || priors[2] == 0) {
      setup.Fail("bottom", "bottom 2, " + setup.DescribeBottom(2) +
                               ", must be 1 x 2 x 4 P: the boxes of P priors and their variances, as PriorBox and "
                               "Concat with axis: 2 make them");
    }
    const bool shared = setup.param().detection_output_param().share_location();
    problem_.priors = priors[2] / 4;
    problem_.boxes = shared ? 1 : problem_.classes;
    const std::string of_priors =
        " for the " + std::to_string(problem_.priors) + " priors of " + setup.DescribeBottom(2);
    if (offsets.axes() < 2 || offsets.count(1) != problem_.priors * problem_.boxes * 4) {
      setup.Fail("bottom",
                 "bottom 0, " + setup.DescribeBottom(0) + ", must hold " +
                     std::to_string(problem_.priors * problem_.boxes * 4) + " numbers for each image" + of_priors +
                     (shared ? ": four for each" : ": with share_location: false, four for each class of each"));
    }
    if (problem_.priors > INT32_MAX / problem_.classes || scores.axes() < 2 ||
        scores.count(1) != problem_.priors * problem_.classes) {
      setup.Fail("bottom", "bottom 1, " + setup.DescribeBottom(1) + ", must hold a score for each of " +
                               std::to_string(problem_.classes) + " classes (num_classes)" + of_priors);
    }
    if (offsets[0] != scores[0]) {
      setup.Fail("bottom", "bottoms 0 and 1, " + setup.DescribeBottom(0) + " and " + setup.DescribeBottom(1) +
                               ", are of different numbers of images");
    }
    problem_.images = offsets[0];
  }

  void ReadCode(const LayerSetup& setup) {
    const DetectionOutputParameter& param = setup.param().detection_output_param();
    if (param.variance_size() > 0) {
      setup.Fail(Field("variance"), "variance is for regions; priors bring theirs along, remove it");
    }
    problem_.has_variance = !param.variance_encoded_in_target();
    problem_.code = param.code_type() == PriorBoxParameter::CENTER_SIZE   ? BoxCode::kCenterSize
                    : param.code_type() == PriorBoxParameter::CORNER_SIZE ? BoxCode::kCornerSize
                                                                          : BoxCode::kCorner;
  }

  void CheckRegions(const LayerSetup& setup) {
    const Shape &offsets = setup.bottom_shape(0), &scores = setup.bottom_shape(1), &regions = setup.bottom_shape(2),
                &info = setup.bottom_shape(3);
    if (regions.axes() < 1 || regions[0] == 0 || regions.count() != regions[0] * kRegionNumbers) {
      setup.Fail("bottom", "bottom 2, " + setup.DescribeBottom(2) +
                               ", must be R x 5: with four bottoms it holds regions, as Proposal makes them");
    }
    problem_.images = info.axes() < 1 ? 0 : info[0];
    CheckImageInfo(setup, 3, problem_.images);
    if (problem_.images == 0 || regions[0] % problem_.images != 0) {
      setup.Fail("bottom", "bottom 2, " + setup.DescribeBottom(2) +
                               ", must hold an equal number of regions for each of the " +
                               std::to_string(problem_.images) + " images of " + setup.DescribeBottom(3));
    }
    problem_.priors = regions[0] / problem_.images;
    const std::string of_regions =
        " for each of the " + std::to_string(regions[0]) + " regions of " + setup.DescribeBottom(2);
    if (problem_.classes > INT32_MAX / regions[0] || scores.count() != regions[0] * problem_.classes) {
      setup.Fail("bottom", "bottom 1, " + setup.DescribeBottom(1) + ", must hold a score of each of " +
                               std::to_string(problem_.classes) + " classes (num_classes)" + of_regions);
    }
    const int64_t of_region = offsets.count() / regions[0] / 4;
    const bool shared = setup.param().detection_output_param().share_location();
    if (offsets.count() != regions[0] * of_region * 4 ||
        (of_region != problem_.classes && of_region != 2 && !(shared && of_region == 1))) {
      setup.Fail("bottom", "bottom 0, " + setup.DescribeBottom(0) + ", must hold four offsets of each of " +
                               std::to_string(problem_.classes) +
                               " classes (num_classes), 8 where all but the background share them, or 4" + of_regions);
    }
    problem_.boxes = of_region;
  }

  void ReadVariance(const LayerSetup& setup) {
    const DetectionOutputParameter& param = setup.param().detection_output_param();
    if (param.has_code_type() && param.code_type() != PriorBoxParameter::CENTER_SIZE) {
      setup.Fail(Field("code_type"), "boxes of regions are told by CENTER_SIZE; say so, or remove code_type");
    }
    if (param.variance_encoded_in_target()) {
      setup.Fail(Field("variance_encoded_in_target"), "regions have no variances; remove variance_encoded_in_target");
    }
    problem_.variance = VarianceOf(setup, Field("variance"), param.variance(), 1);
  }

  void ReadSuppression(const LayerSetup& setup) {
    const DetectionOutputParameter& param = setup.param().detection_output_param();
    const NonMaximumSuppressionParameter& nms = param.nms_param();
    problem_.most_overlap = ReadInRange(setup, Field("nms_param.nms_threshold"), nms.nms_threshold(), kFraction,
                                        "boxes that overlap by more are one");
    problem_.eta =
        ReadInRange(setup, Field("nms_param.eta"), nms.eta(), kPositiveFraction, "nms_threshold is multiplied by it");
    CheckLimit(setup, "nms_param.top_k", nms.top_k());
    CheckLimit(setup, "keep_top_k", param.keep_top_k());
    problem_.top_k = nms.top_k() < 0 ? problem_.priors : std::min<int64_t>(nms.top_k(), problem_.priors);
    if (param.keep_top_k() < 0 && nms.top_k() < 0) {
      setup.Fail("detection_output_param",
                 "neither keep_top_k nor nms_param.top_k is set, so that objects may be without number; set "
                 "keep_top_k, for instance to 200, and nms_param { top_k: 400 }");
    }
    const int64_t found = problem_.top_k * (problem_.classes - (problem_.background >= 0 ? 1 : 0));
    problem_.keep = param.keep_top_k() < 0 ? std::max<int64_t>(found, 1) : param.keep_top_k();
    if (problem_.keep > INT32_MAX / kObjectNumbers / std::max<int64_t>(problem_.images, 1)) {
      setup.Fail(param.keep_top_k() < 0 ? "detection_output_param" : Field("keep_top_k"),
                 std::to_string(problem_.keep) + " objects for each of " + std::to_string(problem_.images) +
                     " images are too many for one blob; " + (param.keep_top_k() < 0 ? "set" : "lower") +
                     " keep_top_k, for instance to 200");
    }
  }

  static void CheckLimit(const LayerSetup& setup, const std::string& field, int32_t limit) {
    if (limit == -1 || limit >= 1) return;
    setup.Fail(Field(field), field.substr(field.rfind('.') + 1) + " is " + std::to_string(limit) +
                                 " but must be 1 or more, or -1 for no limit");
  }

  // Objects are printed by a command. Many nets name files for Caffe's tools, whose absence harms nothing else.
  static void RefuseFiles(LayerSetup& setup) {
    const DetectionOutputParameter& param = setup.param().detection_output_param();
    if (param.visualize()) {
      setup.Fail(Field("visualize"), "images are not shown in a window; remove visualize, and see `crema detect`");
    }
    if (!param.save_file().empty()) {
      setup.Fail(Field("save_file"), "videos are not written; remove save_file, and see `crema detect`");
    }
    if (!param.save_output_param().output_directory().empty()) {
      setup.Warn(Field("save_output_param"), "no files are written to \"" +
                                                 param.save_output_param().output_directory() +
                                                 "\"; `crema detect` prints the objects that are found");
    }
  }

  DetectionProblem problem_;
};

}  // namespace

REGISTER_LAYER(DetectionOutput, DetectionOutputLayer, "detection_output_param");

}  // namespace crema
