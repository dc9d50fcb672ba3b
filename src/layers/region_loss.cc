// RegionLoss: how wrong the predictions of YOLOv2's grid are (Redmon and Farhadi, "YOLO9000: Better, Faster, Stronger",
// 2017), as Darknet's region layer computes it, with the fields of MobileNet-YOLO's fork of Caffe.
#include <cstdint>
#include <string>

#include "layers/field_range.h"
#include "layers/yolo_grid.h"
#include "layers/yolo_loss.h"

namespace crema {

namespace {

constexpr const char* kBlock = "region_loss_param";

class RegionLossLayer : public YoloLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    BeginSetup(setup);
    const RegionLossParameter& param = setup.param().region_loss_param();
    Refuse(setup);
    const std::vector<uint32_t> own = AllAnchors(param.biases_size());
    if (param.has_num() && param.num() != own.size()) {
      setup.Fail(Field("num"), "num is " + std::to_string(param.num()) + ", but biases are of " +
                                   std::to_string(own.size()) + " anchors; correct one of them");
    }
    loss_.grid = YoloGridOf(
        setup, 0, {kBlock, "num_class", param.num_class(), {param.biases().begin(), param.biases().end()}, own});
    ReadNumbers(setup);
    EndSetup(setup, "num_class");
  }

 private:
  static std::string Field(const std::string& field) { return std::string(kBlock) + "." + field; }

  static void Refuse(LayerSetup& setup) {
    const RegionLossParameter& param = setup.param().region_loss_param();
    if (param.coords() != 4) setup.Fail(Field("coords"), "coords must be 4, the numbers that tell a box");
    if (!param.softmax_tree().empty()) {
      setup.Fail(Field("softmax_tree"), "softmax_tree, a hierarchy of classes, is not supported; remove it");
    }
    if (!param.class_map().empty()) {
      setup.Fail(
          Field("class_map"),
          "class_map, other numbers of classes, is not supported; give the objects of the database their numbers");
    }
    const auto warn = [&](bool set, const char* field, const std::string& message) {
      if (set) setup.Warn(Field(field), std::string(field) + " has no effect" + message);
    };
    warn(param.has_jitter() && param.jitter() > 0, "jitter",
         " here, as in the fork: yolo_data_jitter in annotated_data_param cuts the sides of images off");
    warn(param.has_random() && param.random() != 0, "random", ", as in the fork: images keep their size");
    warn(param.has_absolute() && param.absolute() == 0, "absolute", ", as in the fork");
  }

  static bool ReadFlag(const LayerSetup& setup, const char* field, uint32_t value) {
    if (value > 1) {
      setup.Fail(Field(field), std::string(field) + " is " + std::to_string(value) + "; it must be 0 or 1");
    }
    return value == 1;
  }

  void ReadNumbers(const LayerSetup& setup) {
    const RegionLossParameter& param = setup.param().region_loss_param();
    const auto factor = [&](const char* field, float value) {
      return ReadInRange(setup, Field(field), value, kNotNegative);
    };
    loss_.ignore_above = ReadInRange(setup, Field("thresh"), param.thresh(), kFraction);
    loss_.match_above = 1;
    loss_.object_scale = factor("object_scale", param.object_scale());
    loss_.nothing_scale = factor("noobject_scale", param.noobject_scale());
    loss_.class_scale = factor("class_scale", param.class_scale());
    loss_.box_scale = factor("coord_scale", param.coord_scale());
    loss_.matches_predicted = !ReadFlag(setup, "bias_match", param.bias_match());
    loss_.rescores = ReadFlag(setup, "rescore", param.rescore());
    loss_.softmax = ReadFlag(setup, "softmax", param.softmax());
    loss_.averages = loss_.joins_classes = false;
    loss_.through_sigmoid = true;
    if (setup.phase() == TRAIN) {
      const auto images = static_cast<uint64_t>(loss_.grid.images);
      loss_.anchor_passes = (param.warmup_images() + images - 1) / images;
    }
  }
};

}  // namespace

REGISTER_LAYER(RegionLoss, RegionLossLayer, "region_loss_param");

}  // namespace crema
