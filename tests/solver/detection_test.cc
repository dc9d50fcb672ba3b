// The solver's eval_type "detection": mean average precisions as what a test says.
#include <gtest/gtest.h>

#include "errors.h"
#include "solver/training_test.h"

namespace crema {
namespace {

constexpr char kDetectionTests[] = "test_iter: 3 test_interval: 4 ";

class DetectionTest : public SmallTraining {
 protected:
  DetectionTest() {
    // Two objects of class 1, one of class 2. Found are something that is none, one of class 1, and that of class 2,
    // whatever was learnt. DummyData has one value for each top, so that rows are put together of columns.
    std::string net = kSmallNet;
    const auto column = [&net](const std::string& name, int rows, float value) {
      net += "layer { name: \"" + name + "\" type: \"DummyData\" top: \"" + name +
             "\" include { phase: TEST } dummy_data_param { shape { dim: 1 dim: 1 dim: " + std::to_string(rows) +
             " dim: 1 } data_filler { value: " + std::to_string(value) + " } } }\n";
    };
    const auto concat = [&net](const std::string& name, int axis, const std::vector<std::string>& parts) {
      net += "layer { name: \"" + name + "\" type: \"Concat\" top: \"" + name + "\" include { phase: TEST }";
      for (const std::string& part : parts) net += " bottom: \"" + part + "\"";
      net += " concat_param { axis: " + std::to_string(axis) + " } }\n";
    };
    for (const float value : {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f, 2.0f}) column(Name(value), 1, value);
    const auto row = [&](const std::string& name, const std::vector<float>& values) {
      std::vector<std::string> parts;
      for (const float value : values) parts.push_back(Name(value));
      concat(name, 3, parts);
    };
    row("found1", {0, 1, 0.8f, 0.6f, 0.6f, 0.8f, 0.8f});
    row("found2", {0, 1, 0.6f, 0, 0, 0.4f, 0.4f});
    row("found3", {0, 2, 0.4f, 0.2f, 0, 0.4f, 1});
    row("object1", {0, 1, 0, 0, 0, 0.4f, 0.4f, 0});
    row("object2", {0, 1, 1, 0, 0.6f, 0.2f, 1, 0});
    row("object3", {0, 2, 0, 0.2f, 0, 0.4f, 1, 0});
    concat("found", 2, {"found1", "found2", "found3"});
    concat("objects", 2, {"object1", "object2", "object3"});
    folder_.Write("net.prototxt", net +
                                      "layer { name: \"eval\" type: \"DetectionEvaluate\" bottom: \"found\" bottom: "
                                      "\"objects\" top: \"detection_eval\" include { phase: TEST } "
                                      "detection_evaluate_param { num_classes: 3 } }\n");
  }

  static std::string Name(float value) { return "v" + std::to_string(static_cast<int>(value * 10 + 0.5f)); }

  std::string MistakeOf(const std::string& more) {
    return ThrownBy<UserError>([&] { Make(SolverText(more, 4)); });
  }

  static const OutputValue* Find(const TestResult& test, const std::string& name) {
    for (const OutputValue& value : test.outputs) {
      if (value.name == name) return &value;
    }
    return nullptr;
  }
};

TEST_F(DetectionTest, TestsSayTheMeanAveragePrecision) {
  Train(std::string(kDetectionTests) + "eval_type: \"detection\" show_per_class_result: true", 4);
  ASSERT_EQ(recorder_.tests.size(), 2u);
  for (const TestResult& test : recorder_.tests) {
    // accuracy, detection_eval, loss
    ASSERT_EQ(test.outputs.size(), 3u);
    EXPECT_EQ(test.outputs[1].name, "detection_eval");
    // In each of three batches: class 1 has a precision of 1/2 at half the recall, but scores are equal in all batches,
    // so that three wrong ones come before three right ones: 1/4, 2/5, 3/6, each for a sixth of the recall.
    ASSERT_EQ(test.outputs[1].by_class.size(), 2u);
    EXPECT_NEAR(test.outputs[1].by_class[0].value, (1.0 / 4 + 2.0 / 5 + 3.0 / 6) / 6, 1e-6);
    EXPECT_EQ(test.outputs[1].by_class[1].label, 2);
    EXPECT_NEAR(test.outputs[1].by_class[1].value, 1, 1e-6);
    EXPECT_NEAR(test.outputs[1].value, ((1.0 / 4 + 2.0 / 5 + 3.0 / 6) / 6 + 1) / 2, 1e-6);
    EXPECT_EQ(test.outputs[2].name, "loss");
    EXPECT_GT(test.outputs[2].value, 0);
  }
}

TEST_F(DetectionTest, ApVersionIsTaken) {
  Train(std::string(kDetectionTests) + "eval_type: \"detection\" ap_version: \"11point\"", 1);
  const OutputValue* value = Find(recorder_.tests[0], "detection_eval");
  ASSERT_TRUE(value);
  // Class 1: 1/2 up to a recall of 0.5, in six of eleven points.
  EXPECT_NEAR(value->value, (6 * 0.5 / 11 + 1) / 2, 1e-6);
  EXPECT_TRUE(value->by_class.empty());
}

TEST_F(DetectionTest, BestComparesIt) {
  Train(std::string(kDetectionTests) + "eval_type: \"detection\" best { output: \"detection_eval\" patience: 2 }", 20);
  ASSERT_EQ(recorder_.bests.size(), 1u) << "it never changes";
  EXPECT_EQ(recorder_.bests[0].output, "detection_eval");
  EXPECT_TRUE(recorder_.ends[0].out_of_patience);
}

TEST_F(DetectionTest, MistakesAreNamed) {
  EXPECT_NE(MistakeOf(kDetectionTests)
                .find("output \"detection_eval\" of test net #0 is of a DetectionEvaluate layer, whose rows "
                      "have no mean; set eval_type: \"detection\""),
            std::string::npos)
      << MistakeOf(kDetectionTests);
  folder_.Write("net.prototxt", kSmallNet);
  const std::string none = MistakeOf(std::string(kDetectionTests) + "eval_type: \"detection\"");
  EXPECT_NE(none.find("eval_type is \"detection\", but test net #0 has no output of a DetectionEvaluate layer; it has "
                      "accuracy, loss: add that layer"),
            std::string::npos)
      << none;
  EXPECT_EQ(none.find("solver.prototxt:"), 0u) << none;
}

}  // namespace
}  // namespace crema
