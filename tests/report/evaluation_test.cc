#include "report/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace crema {
namespace {

TEST(Evaluate, AveragesEveryElementAndPrintsCaffesLines) {
  NetOptions options;
  options.phase = TEST;
  options.backward = false;
  Net net(ParseNet(R"(
    layer { name: "in" type: "Input" top: "x" top: "scores" top: "label"
      input_param { shape { dim: 2 } shape { dim: 2 dim: 3 } shape { dim: 2 } } }
    layer { name: "copy" type: "ReLU" bottom: "x" top: "y" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" loss_weight: 2 }
  )",
                   "evaluate.prototxt"),
          options);
  for (const NetInput& input : net.inputs()) {
    for (int64_t i = 0; i < input.value.count(); ++i) input.value.f32()[i] = input.name == "x" ? 0.25f * (i + 1) : 0;
  }
  std::vector<std::string> lines;
  const Evaluation result = Evaluate(net, 2, [&](const std::string& line) { lines.push_back(line); });
  ASSERT_EQ(result.outputs.size(), 3u);
  EXPECT_EQ(result.outputs[1].name, "y");
  EXPECT_EQ(result.outputs[1].value, 0.25f);
  EXPECT_EQ(result.outputs[2].value, 0.5f);
  EXPECT_EQ(lines,
            (std::vector<std::string>{"Batch 0, loss = 1.09861", "Batch 0, y = 0.25", "Batch 0, y = 0.5",
                                      "Batch 1, loss = 1.09861", "Batch 1, y = 0.25", "Batch 1, y = 0.5",
                                      "Loss: 2.19722", "loss = 1.09861 (* 2 = 2.19722 loss)", "y = 0.25", "y = 0.5"}));
}

TEST(Evaluate, CountsPixelsOverAllBatches) {
  NetOptions options;
  options.phase = TEST;
  options.backward = false;
  Net net(ParseNet(R"(
    layer { name: "in" type: "Input" top: "scores" top: "label"
      input_param { shape { dim: 1 dim: 2 dim: 1 dim: 2 } shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }
    layer { name: "seg" type: "SegAccuracy" bottom: "scores" bottom: "label" top: "seg"
      seg_accuracy_param { reset: false } }
  )",
                   "evaluate.prototxt"),
          options);
  const auto evaluate = [&net](int batches) {
    std::vector<float> values;
    for (const OutputValue& output : Evaluate(net, batches, [](const std::string&) {}).outputs) {
      values.push_back(output.value);
    }
    return values;
  };
  const auto give = [&net](const std::string& input, const std::vector<float>& values) {
    for (const NetInput& one : net.inputs()) {
      if (one.name == input) std::copy(values.begin(), values.end(), one.value.f32());
    }
  };
  give("scores", {1, 0, 0, 1});
  give("label", {0, 1});
  EXPECT_EQ(evaluate(3), (std::vector<float>{1, 1, 1}));
  // What was counted before does not count.
  give("label", {0, 0});
  EXPECT_EQ(evaluate(2), (std::vector<float>{0.5f, 0.5f, 0.25f}));
}

TEST(Evaluate, MakesAMeanAveragePrecisionOfDetections) {
  NetOptions options;
  options.phase = TEST;
  options.backward = false;
  Net net(ParseNet(R"(
    layer { name: "in" type: "Input" top: "found" top: "objects"
      input_param { shape { dim: 1 dim: 1 dim: 3 dim: 7 } shape { dim: 1 dim: 1 dim: 2 dim: 8 } } }
    layer { name: "eval" type: "DetectionEvaluate" bottom: "found" bottom: "objects" top: "detection_eval"
      detection_evaluate_param { num_classes: 4 } }
  )",
                   "evaluate.prototxt"),
          options);
  // Of class 1 something that is none and then the object, of class 3 nothing.
  const std::vector<float> found = {0, 1,    0.9f, 0.5f, 0.5f, 1,  1,  0,  1,  0.8f, 0,
                                    0, 0.5f, 0.5f, -1,   -1,   -1, -1, -1, -1, -1};
  const std::vector<float> objects = {0, 1, 0, 0, 0, 0.5f, 0.5f, 0, 0, 3, 0, 0, 0, 1, 1, 0};
  for (const NetInput& input : net.inputs()) {
    const std::vector<float>& values = input.name == "found" ? found : objects;
    std::copy(values.begin(), values.end(), input.value.f32());
  }
  const auto lines = [&net](ApVersion version) {
    std::vector<std::string> all;
    Evaluate(
        net, 1, [&](const std::string& line) { all.push_back(line); }, version);
    return all;
  };
  EXPECT_EQ(lines(ApVersion::kIntegral),
            (std::vector<std::string>{"Loss: 0", "class1: 0.5", "class3: 0", "detection_eval = 0.25"}));
  EXPECT_EQ(lines(ApVersion::kElevenPoint)[3], "detection_eval = 0.25");
}

}  // namespace
}  // namespace crema
