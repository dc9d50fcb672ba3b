// Yolov3: how wrong the predictions of one grid are (Redmon and Farhadi, "YOLOv3: An Incremental Improvement", 2018),
// as MobileNet-YOLO's fork of Caffe names its fields. Where two objects are learnt at one place, both their classes
// are, which that fork does not do rightly; object_scale counts with and without use_logic_gradient.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "layers/loss.h"
#include "layers/object_check.h"
#include "layers/yolo_grid.h"
#include "ops/operations.h"

namespace crema {

namespace {

YoloBoxLoss BoxLossOf(Yolov3Parameter::IOU_LOSS loss) {
  switch (loss) {
    case Yolov3Parameter::IOU:
      return YoloBoxLoss::kOverlap;
    case Yolov3Parameter::GIOU:
      return YoloBoxLoss::kGeneralized;
    case Yolov3Parameter::DIOU:
      return YoloBoxLoss::kDistance;
    case Yolov3Parameter::CIOU:
      return YoloBoxLoss::kComplete;
    case Yolov3Parameter::MSE:
      break;
  }
  return YoloBoxLoss::kSquares;
}

class Yolov3Layer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    setup.NoGradient(1);
    const Yolov3Parameter& param = setup.param().yolov3_param();
    loss_.grid = YoloGridOf(setup, 0,
                            {"yolov3_param",
                             "num_class",
                             param.num_class(),
                             {param.biases().begin(), param.biases().end()},
                             OwnAnchors(setup),
                             static_cast<double>(param.anchors_scale()),
                             param.scale_x_y(),
                             param.new_coords()});
    ReadNumbers(setup);
    loss_.objects = TrueObjectRows(setup, 1);
    object_check_.Setup(setup, 1, loss_.rows(), "num_class");
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.SetFlops(5.0 * static_cast<double>(setup.bottom_shape(0).count()));
  }

  void Plan(LayerPlan& plan) override {
    const Shape& shape = plan.bottom(0).shape;
    losses_at_ = 0;
    if (plan.backward()) {
      gradient_ = plan.Save({shape});
    } else {
      losses_at_ = (TensorSpec{shape}.bytes() + kAligned - 1) / kAligned * kAligned;
    }
    plan.Workspace(losses_at_ + TensorSpec{Shape{predictions()}}.bytes(),
                   plan.backward() ? OperationsOf(*plan.context().device).ChannelWorkspace(All(shape)) : 0);
  }

  void Forward(const LayerRun& run) override {
    object_check_.Run(run);
    auto* const losses = reinterpret_cast<float*>(run.workspace + losses_at_);
    float* const gradient = losses_at_ > 0 ? reinterpret_cast<float*>(run.workspace) : GradientOf(run);
    run.ops->LearnYolo(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), gradient, losses);
    Reduction sum;
    sum.reduced = predictions();
    sum.factor = 1 / static_cast<float>(loss_.grid.images);
    run.ops->Reduce(sum, losses, run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    ChannelAffine times;
    times.x = GradientOf(run);
    times.scale = run.top_grads[0].f32();
    times.y = run.bottom_grads[0].f32();
    run.ops->ChannelAffine(All(run.bottom_grads[0].shape()), times, run.workspace);
  }

  void OnBadValue(int64_t position, float value) const override { object_check_.Refuse(position, value); }

 private:
  static constexpr size_t kAligned = 64;  // bytes

  // As one channel.
  static ChannelGrid All(const Shape& shape) { return {1, 1, shape.count()}; }
  int64_t predictions() const { return loss_.grid.images * loss_.grid.of_image(); }
  float* GradientOf(const LayerRun& run) const { return run.saved[static_cast<size_t>(gradient_)].f32(); }

  static std::vector<uint32_t> OwnAnchors(const LayerSetup& setup) {
    const Yolov3Parameter& param = setup.param().yolov3_param();
    std::vector<uint32_t> own(param.mask().begin(), param.mask().end());
    if (own.empty()) {
      own.resize(static_cast<size_t>(param.biases_size() / 2));
      std::iota(own.begin(), own.end(), 0u);
    }
    if (param.has_num() && param.num() != own.size()) {
      setup.Fail("yolov3_param.num", "num is " + std::to_string(param.num()) + ", but " +
                                         (param.mask_size() > 0 ? "mask names " : "biases are of ") +
                                         std::to_string(own.size()) + " anchors; correct one of them");
    }
    return own;
  }

  void ReadNumbers(LayerSetup& setup) {
    const Yolov3Parameter& param = setup.param().yolov3_param();
    const auto number = [&](const char* field, float value, bool is_share = false) {
      if (value >= 0 && (is_share ? value <= 1 : std::isfinite(value))) return value;
      setup.Fail(std::string("yolov3_param.") + field,
                 std::string(field) + " is " + FormatNumber(value) +
                     (is_share ? "; it must be in [0, 1]" : "; it must be 0 or more, and finite"));
    };
    if (param.anchors_scale() == 0) {
      setup.Fail("yolov3_param.anchors_scale",
                 "anchors_scale is 0; it is the pixels of the net's input from cell to cell");
    }
    loss_.ignore_above = number("thresh", param.thresh(), true);
    loss_.match_above = number("iou_thresh", param.iou_thresh(), true);
    loss_.object_scale = number("object_scale", param.object_scale());
    loss_.nothing_scale = number("noobject_scale", param.noobject_scale());
    loss_.class_scale = number("class_scale", param.class_scale());
    loss_.box_scale = number("coord_scale", param.coord_scale());
    loss_.overlap_scale = number("iou_normalizer", param.iou_normalizer());
    loss_.most_delta = number("max_delta", param.max_delta());
    loss_.smoothing = number("label_smooth_eps", param.label_smooth_eps(), true);
    loss_.box_loss = BoxLossOf(param.iou_loss());
    loss_.averages = param.accumulate();
    loss_.through_sigmoid = param.use_logic_gradient();
    if (param.use_focal_loss()) {
      setup.Fail("yolov3_param.use_focal_loss", "use_focal_loss: true is not supported; remove it");
    }
    const bool squares = loss_.box_loss == YoloBoxLoss::kSquares;
    if (squares && param.new_coords()) {
      setup.Fail("yolov3_param.new_coords",
                 "new_coords: true is not learnt with iou_loss: MSE; take IOU, GIOU, DIOU or "
                 "CIOU");
    }
    const auto warn_unless = [&](bool read, const char* field, bool set, const char* when) {
      if (!read && set) setup.Warn(std::string("yolov3_param.") + field, std::string(field) + " has no effect " + when);
    };
    warn_unless(squares, "coord_scale", param.has_coord_scale(), "without iou_loss: MSE");
    warn_unless(!squares, "iou_normalizer", param.has_iou_normalizer(), "with iou_loss: MSE");
    warn_unless(!squares, "max_delta", param.has_max_delta(), "with iou_loss: MSE");
  }

  YoloLoss loss_;
  ObjectCheck object_check_;
  int gradient_ = -1;     // which of the saved tensors
  size_t losses_at_ = 0;  // in the workspace; 0: the gradient is saved, else it lies before
};

}  // namespace

REGISTER_LAYER(Yolov3, Yolov3Layer, "yolov3_param");

}  // namespace crema
