#include "report/evaluation.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace crema
