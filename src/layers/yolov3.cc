// Yolov3: how wrong the predictions of one grid are (Redmon and Farhadi, "YOLOv3: An Incremental Improvement", 2018),
// as MobileNet-YOLO's fork of Caffe names its fields. Where two objects are learnt at one place, both their classes
// are, which that fork does not do rightly; object_scale counts with and without use_logic_gradient.
#include <string>
#include <vector>

#include "layers/field_range.h"
#include "layers/yolo_grid.h"
#include "layers/yolo_loss.h"

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

class Yolov3Layer : public YoloLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    BeginSetup(setup);
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
    EndSetup(setup, "num_class");
  }

 private:
  static std::vector<uint32_t> OwnAnchors(const LayerSetup& setup) {
    const Yolov3Parameter& param = setup.param().yolov3_param();
    std::vector<uint32_t> own(param.mask().begin(), param.mask().end());
    if (own.empty()) own = AllAnchors(param.biases_size());
    if (param.has_num() && param.num() != own.size()) {
      setup.Fail("yolov3_param.num", "num is " + std::to_string(param.num()) + ", but " +
                                         (param.mask_size() > 0 ? "mask names " : "biases are of ") +
                                         std::to_string(own.size()) + " anchors; correct one of them");
    }
    return own;
  }

  void ReadNumbers(LayerSetup& setup) {
    const Yolov3Parameter& param = setup.param().yolov3_param();
    const auto number = [&](const char* field, float value, const NumberRange& range) {
      return ReadInRange(setup, std::string("yolov3_param.") + field, value, range);
    };
    const auto factor = [&](const char* field, float value) { return number(field, value, kNotNegative); };
    const auto share = [&](const char* field, float value) { return number(field, value, kFraction); };
    if (param.anchors_scale() == 0) {
      setup.Fail("yolov3_param.anchors_scale",
                 "anchors_scale is 0; it is the pixels of the net's input from cell to cell");
    }
    loss_.ignore_above = share("thresh", param.thresh());
    loss_.match_above = share("iou_thresh", param.iou_thresh());
    loss_.object_scale = factor("object_scale", param.object_scale());
    loss_.nothing_scale = factor("noobject_scale", param.noobject_scale());
    loss_.class_scale = factor("class_scale", param.class_scale());
    loss_.box_scale = factor("coord_scale", param.coord_scale());
    loss_.overlap_scale = factor("iou_normalizer", param.iou_normalizer());
    loss_.most_delta = factor("max_delta", param.max_delta());
    loss_.smoothing = share("label_smooth_eps", param.label_smooth_eps());
    loss_.box_loss = BoxLossOf(param.iou_loss());
    loss_.averages = param.accumulate();
    loss_.through_sigmoid = loss_.classes_through_sigmoid = param.use_logic_gradient();
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
};

}  // namespace

REGISTER_LAYER(Yolov3, Yolov3Layer, "yolov3_param");

}  // namespace crema
