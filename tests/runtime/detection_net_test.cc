// Nets that find objects: priors are made once, of shapes alone, and a GPU finds what the CPU does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/net.h"
#include "device/gpu.h"
#include "graph/program.h"

namespace crema {
namespace {

constexpr char kNet[] = R"(
layer { type: "Input" name: "in" top: "data" input_param { shape { dim: 2 dim: 3 dim: 40 dim: 40 } } }
layer { type: "Convolution" name: "c1" bottom: "data" top: "c1"
        convolution_param { num_output: 16 kernel_size: 3 stride: 4 weight_filler { type: "msra" } } }
layer { type: "Convolution" name: "c2" bottom: "c1" top: "c2"
        convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { type: "PriorBox" name: "p" bottom: "c1" bottom: "data" top: "p"
        prior_box_param { min_size: 8 max_size: 14 aspect_ratio: 2 variance: [0.1, 0.1, 0.2, 0.2] } }
layer { type: "Permute" name: "t" bottom: "c2" top: "t" permute_param { order: [0, 2, 3, 1] } }
layer { type: "Slice" name: "s" bottom: "t" top: "offset" top: "score" slice_param { axis: 3 slice_point: 16 } }
layer { type: "Flatten" name: "f1" bottom: "offset" top: "offsets" }
layer { type: "Flatten" name: "f2" bottom: "score" top: "scores" }
layer { type: "DetectionOutput" name: "d" bottom: "offsets" bottom: "scores" bottom: "p" top: "d"
        detection_output_param {
          num_classes: 4 code_type: CENTER_SIZE keep_top_k: 20 confidence_threshold: 0.3
          nms_param { nms_threshold: 0.45 top_k: 50 } } })";

NetOptions On(Device& device) {
  NetOptions options{.phase = TEST, .backward = false};
  options.context.device = &device;
  options.context.seed = 3;
  return options;
}

void WriteInput(Net& net, int turn) {
  const Tensor data = net.inputs()[0].value;
  for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i * (turn + 1)));
}

std::vector<float> ObjectsOf(Net& net, int turn) {
  WriteInput(net, turn);
  net.Forward();
  const Tensor objects = net.blob("d");
  return {objects.f32(), objects.f32() + objects.count()};
}

// What convolutions make lies channels last; PriorBox, which knows shapes only, needs no plain copy.
TEST(DetectionNet, NothingIsReorderedForPriors) {
  const Net net(ParseNet(kNet, "net.prototxt"), On(CpuDevice()));
  const Program& program = net.compiled().program;
  for (const Step& step : program.forward) {
    if (step.kind != StepKind::kReorder) continue;
    EXPECT_EQ(program.tensors[step.tops[0]].name.find("c1"), std::string::npos) << program.tensors[step.tops[0]].name;
  }
}

TEST(DetectionNet, FindsTheSameInEachPass) {
  Net net(ParseNet(kNet, "net.prototxt"), On(CpuDevice()));
  const std::vector<float> first = ObjectsOf(net, 0), other = ObjectsOf(net, 1);
  EXPECT_EQ(first[0], 0);
  EXPECT_GE(first[2], 0.3f);
  EXPECT_NE(first, other);
  EXPECT_EQ(ObjectsOf(net, 0), first);
}

// Which image it is wrong for cannot be told.
TEST(DetectionNet, AnObjectOfNoImageNamesNoItem) {
  Net net(ParseNet(R"(
      layer { type: "Input" name: "in" top: "boxes" top: "scores" top: "priors" top: "label" input_param {
        shape { dim: 2 dim: 4 } shape { dim: 2 dim: 2 } shape { dim: 1 dim: 2 dim: 4 }
        shape { dim: 1 dim: 1 dim: 2 dim: 8 } } }
      layer { type: "MultiBoxLoss" name: "loss" bottom: "boxes" bottom: "scores" bottom: "priors" bottom: "label"
              top: "loss" multibox_loss_param { num_classes: 2 } })",
                   "net.prototxt"),
          {});
  const auto message_for = [&net](float image) {
    const Tensor label = net.blob("label");
    std::fill(label.f32(), label.f32() + label.count(), -1.0f);
    label.f32()[8] = image;
    label.f32()[9] = 1;
    try {
      net.Forward();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string torn = message_for(0.5f), other = message_for(7);
  EXPECT_NE(torn.find("row 1 of \"label\" is of image 0.5"), std::string::npos) << torn;
  EXPECT_EQ(torn.find("of the batch)"), std::string::npos) << torn;
  EXPECT_NE(other.find("(item 7 of the batch)"), std::string::npos) << other;
}

// The end of a net of R-FCN with online hard example mining, in its authors' words: of the objects' four classes all
// have the same offsets.
constexpr char kMining[] = R"(
layer { type: "Input" name: "in" top: "data" top: "rpn_rois" top: "gt_boxes"
        input_param { shape { dim: 2 dim: 3 dim: 32 dim: 32 } shape { dim: 24 dim: 5 } shape { dim: 2 dim: 2 dim: 5 } } }
layer { type: "Python" name: "roi-data" bottom: "rpn_rois" bottom: "gt_boxes"
        top: "rois" top: "labels" top: "bbox_targets" top: "bbox_inside_weights" top: "bbox_outside_weights"
        python_param { module: "rpn.proposal_target_layer" layer: "ProposalTargetLayer" param_str: "'num_classes': 2" } }
layer { type: "Convolution" name: "cls" bottom: "data" top: "cls"
        convolution_param { num_output: 16 kernel_size: 3 pad: 1 stride: 2 weight_filler { type: "msra" } } }
layer { type: "Convolution" name: "box" bottom: "data" top: "box"
        convolution_param { num_output: 32 kernel_size: 3 pad: 1 stride: 2 weight_filler { type: "msra" } } }
layer { type: "PSROIPooling" name: "pc" bottom: "cls" bottom: "rois" top: "pc"
        psroi_pooling_param { spatial_scale: 0.5 output_dim: 4 group_size: 2 } }
layer { type: "Pooling" name: "cls_score" bottom: "pc" top: "cls_score"
        pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { type: "PSROIPooling" name: "pb" bottom: "box" bottom: "rois" top: "pb"
        psroi_pooling_param { spatial_scale: 0.5 output_dim: 8 group_size: 2 } }
layer { type: "Pooling" name: "bbox_pred" bottom: "pb" top: "bbox_pred"
        pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { type: "SoftmaxWithLossOHEM" name: "per_roi_loss_cls" bottom: "cls_score" bottom: "labels"
        top: "temp_loss_cls" top: "temp_prob_cls" top: "per_roi_loss_cls"
        loss_weight: 0 loss_weight: 0 loss_weight: 0 propagate_down: false propagate_down: false }
layer { type: "SmoothL1LossOHEM" name: "per_roi_loss_bbox" bottom: "bbox_pred" bottom: "bbox_targets"
        bottom: "bbox_inside_weights" top: "temp_loss_bbox" top: "per_roi_loss_bbox"
        loss_weight: 0 loss_weight: 0 propagate_down: false propagate_down: false propagate_down: false }
layer { type: "Eltwise" name: "per_roi_loss" bottom: "per_roi_loss_cls" bottom: "per_roi_loss_bbox" top: "per_roi_loss"
        propagate_down: false propagate_down: false }
layer { type: "BoxAnnotatorOHEM" name: "annotator" bottom: "rois" bottom: "per_roi_loss" bottom: "labels"
        bottom: "bbox_inside_weights" top: "labels_ohem" top: "bbox_loss_weights_ohem"
        propagate_down: false propagate_down: false propagate_down: false propagate_down: false
        box_annotator_ohem_param { roi_per_img: 5 ignore_label: -1 } }
layer { type: "Silence" name: "silence" bottom: "bbox_outside_weights" bottom: "temp_loss_cls" bottom: "temp_prob_cls"
        bottom: "temp_loss_bbox" }
layer { type: "SoftmaxWithLoss" name: "loss" bottom: "cls_score" bottom: "labels_ohem" top: "loss_cls"
        loss_param { ignore_label: -1 } propagate_down: true propagate_down: false }
layer { type: "Accuracy" name: "accuracy" bottom: "cls_score" bottom: "labels_ohem" top: "accuracy"
        accuracy_param { ignore_label: -1 } propagate_down: false propagate_down: false }
layer { type: "SmoothL1LossOHEM" name: "loss_bbox" bottom: "bbox_pred" bottom: "bbox_targets"
        bottom: "bbox_loss_weights_ohem" top: "loss_bbox" loss_weight: 1
        loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 5 }
        propagate_down: true propagate_down: false propagate_down: false })";

void WriteRegions(Net& net) {
  WriteInput(net, 0);
  const std::vector<float> objects = {3, 5, 20, 24, 3, 12, 10, 30, 28, 1, 8, 8, 25, 20, 2, -1, -1, -1, -1, -1};
  std::copy(objects.begin(), objects.end(), net.inputs()[2].value.f32());
  for (int i = 0; i < 24; ++i) {
    const auto x = static_cast<float>(i % 6 * 2), y = static_cast<float>(i % 4 * 3);
    const bool none = i % 12 > 9;
    const float region[] = {none ? -1 : static_cast<float>(i / 12), x, y, x + 16, y + 15};
    std::copy(std::begin(region), std::end(region), net.inputs()[1].value.f32() + 5 * i);
  }
}

std::vector<float> ValuesOf(const Net& net, const std::string& blob) {
  const Tensor values = net.blob(blob);
  return {values.f32(), values.f32() + values.count()};
}

NetOptions Learning(Device& device) {
  NetOptions options{.phase = TRAIN, .keep_all = true};
  options.context.device = &device;
  options.context.seed = 3;
  return options;
}

TEST(DetectionNet, LearnsFromTheHardestRegions) {
  Net net(ParseNet(kMining, "net.prototxt"), Learning(CpuDevice()));
  WriteRegions(net);
  net.Forward();
  const std::vector<float> rois = ValuesOf(net, "rois"), loss = ValuesOf(net, "per_roi_loss"),
                           of_class = ValuesOf(net, "per_roi_loss_cls"), labels = ValuesOf(net, "labels"),
                           kept = ValuesOf(net, "labels_ohem");
  ASSERT_EQ(kept.size(), 2u * (12 + 2));
  double sum = 0;
  for (const float image : {0.0f, 1.0f}) {
    std::vector<float> all, chosen;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (rois[5 * i] == image) all.push_back(loss[i]);
      if (rois[5 * i] != image || kept[i] < 0) continue;
      chosen.push_back(loss[i]);
      EXPECT_EQ(kept[i], labels[i]);
      sum += of_class[i];
    }
    EXPECT_EQ(all.size(), image == 0 ? 12u : 11u);  // rows that are no region are not among them
    std::sort(all.rbegin(), all.rend());
    std::sort(chosen.rbegin(), chosen.rend());
    all.resize(5);
    EXPECT_EQ(chosen, all);
  }
  EXPECT_EQ(*std::max_element(labels.begin(), labels.end()), 3);
  EXPECT_NEAR(ValuesOf(net, "loss_cls")[0], sum / 10, 1e-5);
}

TEST(DetectionNet, GpuMinesWhatTheCpuDoes) {
  Gpu* gpu = nullptr;
  try {
    gpu = &OpenGpu(0);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  Net cpu(ParseNet(kMining, "net.prototxt"), Learning(CpuDevice())),
      other(ParseNet(kMining, "net.prototxt"), Learning(*gpu));
  for (Net* net : {&cpu, &other}) {
    WriteRegions(*net);
    net->Forward();
  }
  for (const char* blob : {"rois", "labels_ohem", "bbox_loss_weights_ohem", "per_roi_loss", "loss_cls", "loss_bbox"}) {
    const std::vector<float> expected = ValuesOf(cpu, blob), found = ValuesOf(other, blob);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << blob << ", " << i;
  }
}

TEST(DetectionNet, GpuFindsWhatTheCpuDoes) {
  Gpu* gpu = nullptr;
  try {
    gpu = &OpenGpu(0);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  Net cpu(ParseNet(kNet, "net.prototxt"), On(CpuDevice())), other(ParseNet(kNet, "net.prototxt"), On(*gpu));
  for (int turn = 0; turn < 4; ++turn) {
    const std::vector<float> expected = ObjectsOf(cpu, turn), found = ObjectsOf(other, turn);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << "pass " << turn << ", " << i;
  }
}

}  // namespace
}  // namespace crema
