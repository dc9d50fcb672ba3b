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
