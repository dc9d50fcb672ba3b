// Yolov3DetectionOutput and YoloDetectionOutput: the objects that YOLO's third and second version found (Redmon and
// Farhadi, 2018 and 2017), as MobileNet-YOLO's fork of Caffe does it, which takes one image at a time; or as Darknet.
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "base/aligned_memory.h"
#include "layers/field_range.h"
#include "layers/yolo_grid.h"
#include "ops/operations.h"

namespace crema {

namespace {

// Param: Yolov3DetectionOutputParameter, with a sigmoid of each class, or YoloDetectionOutputParameter, with a Softmax.
template <typename Param>
class YoloDetectionLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectTops(1);
    setup.MakeNonDifferentiable();
    ReadThresholds(setup);
    grids_ = YoloGridsOf(setup, ParamOf(setup));
    each_class_ = ParamOf(setup).each_class();
    problem_.images = grids_[0].images;
    problem_.classes = each_class_ ? 1 + grids_[0].classes : 1;
    problem_.background = each_class_ ? 0 : -1;
    problem_.as_corners = true;
    problem_.priors = 0;
    for (size_t i = 0; i < grids_.size(); ++i) {
      if (grids_[i].images != problem_.images) {
        setup.Fail("bottom", "bottoms 0 and " + std::to_string(i) + ", " + setup.DescribeBottom(0) + " and " +
                                 setup.DescribeBottom(static_cast<int>(i)) + ", are of different numbers of images");
      }
      problem_.priors += grids_[i].of_image();
    }
    if (problem_.priors > INT32_MAX / std::max(kObjectNumbers, problem_.classes) / problem_.images) {
      setup.Fail("bottom", std::to_string(problem_.priors) + " predictions for each of " +
                               std::to_string(problem_.images) +
                               " images are too many for one blob; use smaller batches");
    }
    problem_.top_k = problem_.keep = problem_.priors;
    setup.SetTop(0, {1, 1, problem_.rows(), kObjectNumbers});
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(ListsAt() + OperationsOf(*plan.context().device).DetectionWorkspace(problem_), 0);
  }

  void Forward(const LayerRun& run) override {
    const int64_t count = problem_.images * problem_.priors;
    auto* const corners = reinterpret_cast<float*>(run.workspace);
    float* const scores = corners + 4 * count;
    YoloBoxes boxes = {0, problem_.priors, kSoftmax, each_class_, corners, scores, scores + count};
    for (size_t i = 0; i < grids_.size(); ++i) {
      run.ops->DecodeYolo(grids_[i], run.bottoms[i].f32(), boxes);
      boxes.first += grids_[i].of_image();
    }
    DetectionInputs inputs = {boxes.corners, boxes.scores};
    if (!each_class_) inputs.labels = boxes.labels;
    run.ops->DetectObjects(problem_, inputs, run.tops[0].f32(), run.workspace + ListsAt());
  }

 private:
  static constexpr bool kSoftmax = std::is_same_v<Param, YoloDetectionOutputParameter>;
  static constexpr const char* kBlock = kSoftmax ? "yolo_detection_output_param" : "yolov3_detection_output_param";

  static const Param& ParamOf(const LayerSetup& setup) {
    if constexpr (kSoftmax) {
      return setup.param().yolo_detection_output_param();
    } else {
      return setup.param().yolov3_detection_output_param();
    }
  }

  void ReadThresholds(const LayerSetup& setup) {
    const Param& param = ParamOf(setup);
    const std::string block = kBlock;
    problem_.score_above =
        ReadInRange(setup, block + ".confidence_threshold", param.confidence_threshold(), kFinite, "0.01 is usual");
    problem_.most_overlap = ReadInRange(setup, block + ".nms_threshold", param.nms_threshold(), kFraction,
                                        "boxes that overlap by more are one");
  }

  // Behind the corners, scores and labels of each prediction.
  size_t ListsAt() const {
    const int64_t numbers = 4 + (each_class_ ? problem_.classes : 2);
    return AlignedBytesOf<float>(numbers * problem_.images * problem_.priors);
  }

  std::vector<YoloGrid> grids_;
  bool each_class_ = false;
  DetectionProblem problem_;
};

using Yolov3DetectionOutputLayer = YoloDetectionLayer<Yolov3DetectionOutputParameter>;
using YoloDetectionOutputLayer = YoloDetectionLayer<YoloDetectionOutputParameter>;

}  // namespace

REGISTER_LAYER(Yolov3DetectionOutput, Yolov3DetectionOutputLayer, "yolov3_detection_output_param");
REGISTER_LAYER(YoloDetectionOutput, YoloDetectionOutputLayer, "yolo_detection_output_param");

}  // namespace crema
