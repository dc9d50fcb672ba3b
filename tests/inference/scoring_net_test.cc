// How training nets become nets that score.
#include "inference/scoring_net.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/files.h"
#include "data/data_testing.h"
#include "errors.h"
#include "inference/classifier.h"
#include "inference/small_images.h"

namespace crema {
namespace {

ScoringNet Scoring(const std::string& text) {
  return MakeScoringNet(ParseNet(text, "net.prototxt"), "net.prototxt", {});
}

constexpr char kTrainVal[] = R"(
layer { name: "a" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  data_param { source: "train_db" batch_size: 8 } }
layer { name: "b" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { crop_size: 2 mean_value: 9 } data_param { source: "test_db" batch_size: 8 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 4 } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "shown" type: "Silence" bottom: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

TEST(ScoringNet, TakesThePlaceOfMemoryData) {
  const ScoringNet scoring = Scoring(R"(
layer { name: "m" type: "MemoryData" top: "data" top: "label" transform_param { scale: 0.5 }
  memory_data_param { batch_size: 8 channels: 1 height: 3 width: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 4 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
  EXPECT_EQ(scoring.input, "data");
  EXPECT_TRUE(scoring.has_shape);
  EXPECT_EQ(scoring.transform.scale(), 0.5f);
  const Classifier classifier(scoring, Numbers(), {});
  EXPECT_EQ(classifier.runner().input(), (ImageSize{1, 3, 2}));
  EXPECT_EQ(classifier.classes(), 4);
}

TEST(ScoringNet, OfANetForTrainingEndsInProbabilities) {
  const ScoringNet scoring = Scoring(kTrainVal);
  EXPECT_EQ(scoring.input, "data");
  EXPECT_EQ(scoring.database, "test_db");
  EXPECT_EQ(scoring.transform.crop_size(), 2u);
  EXPECT_EQ(scoring.transform.mean_value(0), 9);
  EXPECT_FALSE(scoring.has_shape);
  const auto items = std::make_shared<Numbers>();
  Classifier classifier(scoring, *items, {});
  EXPECT_EQ(classifier.classes(), 4);
  EXPECT_TRUE(classifier.probabilities());
  EXPECT_EQ(classifier.runner().input(), (ImageSize{1, 2, 2}));
  EXPECT_EQ(classifier.net().outputs().size(), 1u);
}

TEST(ScoringNet, KnowsFocalLossByItsNames) {
  for (const std::string type : {"FocalLoss", "SoftmaxFocalLoss"}) {
    std::string text = kTrainVal;
    text.replace(text.find("SoftmaxWithLoss"), 15, type);
    const ScoringNet scoring = Scoring(text);
    EXPECT_EQ(scoring.scores, "loss probabilities");
    EXPECT_TRUE(Classifier(scoring, Numbers(), {}).probabilities());
  }
}

TEST(ScoringNet, KnowsTheLossWithWeights) {
  std::string text = kTrainVal;
  for (int i = 0; i < 2; ++i) text.replace(text.find("top: \"label\" include"), 12, "top: \"label\" top: \"weight\"");
  const size_t loss = text.find("SoftmaxWithLoss");
  text.replace(text.find("bottom: \"label\"", loss), 15, "bottom: \"label\" bottom: \"weight\"");
  for (const std::string type : {"SoftmaxWithLoss", "WeightedSoftmaxWithLoss"}) {
    std::string of_type = text;
    of_type.replace(loss, 15, type);
    const ScoringNet scoring = Scoring(of_type);
    EXPECT_EQ(scoring.scores, "loss probabilities");
    EXPECT_TRUE(Classifier(scoring, Numbers(), {}).probabilities());
  }
}

TEST(ScoringNet, WithoutALossGivesWhatAccuracyReads) {
  std::string text = kTrainVal;
  text = text.substr(0, text.find("layer { name: \"loss\""));
  const ScoringNet scoring = Scoring(text);
  EXPECT_EQ(scoring.scores, "ip");
  Classifier classifier(scoring, Numbers(), {});
  EXPECT_FALSE(classifier.probabilities());
}

TEST(ScoringNet, NeedsNoScoresWhereABlobIsNamed) {
  const NetFile file = ParseNet(
      "layer { name: \"d\" type: \"Data\" top: \"data\" top: \"label\" }"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param { num_output: 4 } }"
      "layer { name: \"l\" type: \"HingeLoss\" bottom: \"ip\" bottom: \"label\" top: \"l\" }",
      "net.prototxt");
  EXPECT_THROW(MakeScoringNet(file, "net.prototxt", {}), UserError);
  ImageRunOptions options;
  options.net.outputs = {"ip"};
  const ScoringNet scoring = MakeScoringNet(file, "net.prototxt", options.net);
  const Classifier classifier(scoring, Numbers(), options);
  EXPECT_EQ(classifier.scores(), "ip");
}

TEST(ScoringNet, SaysWhichBlobsComeOfLabels) {
  const NetFile file = ParseNet(
      "layer { name: \"d\" type: \"Data\" top: \"data\" top: \"label\" }"
      "layer { name: \"both\" type: \"Concat\" bottom: \"data\" bottom: \"label\" top: \"both\" }"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"both\" top: \"ip\" inner_product_param { num_output: 4 } }"
      "layer { name: \"flat\" type: \"Flatten\" bottom: \"data\" top: \"flat\" }",
      "net.prototxt");
  const auto problem = [&](const std::string& blob) -> std::string {
    NetOptions options;
    options.outputs = {blob};
    return ThrownBy<UserError>([&] { MakeScoringNet(file, "net.prototxt", options); });
  };
  EXPECT_NE(problem("ip").find("blob \"ip\" comes of labels, which layer \"both\" (Concat) reads"), std::string::npos)
      << problem("ip");
  EXPECT_NE(problem("ip").find("crema extract --iterations=N"), std::string::npos) << problem("ip");
  EXPECT_NE(problem("label").find("\"label\" holds the labels of the net's data"), std::string::npos)
      << problem("label");
  EXPECT_EQ(problem("flat"), "");
}

TEST(ScoringNet, SaysWhatRunsNetsOfVideosAndTables) {
  for (const std::string type : {"VideoData", "HDF5Data", "WindowData"}) {
    try {
      Scoring("layer { name: \"d\" type: \"" + type + "\" top: \"data\" top: \"label\" }");
      ADD_FAILURE() << type;
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find("crema extract --blob=NAME") != std::string::npos, type != "WindowData") << message;
      EXPECT_EQ(message.find("use the deploy net") != std::string::npos, type == "WindowData") << message;
    }
  }
}

TEST(ScoringNet, LeavesOutTheMarginsOfEmbeddings) {
  const ScoringNet scoring = Scoring(R"(
layer { name: "d" type: "Data" top: "data" top: "label" }
layer { name: "sphere" type: "MarginInnerProduct" bottom: "data" bottom: "label" top: "sphere" top: "lambda"
  margin_inner_product_param { num_output: 5 type: QUADRUPLE weight_filler { type: "xavier" } } }
layer { name: "margin" type: "LabelSpecificAdd" bottom: "sphere" bottom: "label" top: "margin"
  label_specific_add_param { bias: -0.35 transform_test: true } }
layer { name: "center" type: "CenterLoss" bottom: "data" bottom: "label" top: "center"
  center_loss_param { num_output: 5 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "margin" bottom: "label" top: "loss" }
)");
  EXPECT_EQ(scoring.scores, "loss probabilities");
  const Classifier classifier(scoring, Numbers(), {});
  EXPECT_TRUE(classifier.probabilities());
  EXPECT_EQ(classifier.classes(), 5);
}

// In a phase of its own, under the names that it reads or others, and in both.
TEST(ScoringNet, ImagesPassThroughMixUp) {
  for (const std::string mixed : {R"(top: "data" top: "target" include { phase: TRAIN })",
                                  R"(top: "data" top: "label")", R"(top: "mixed" top: "target")"}) {
    SCOPED_TRACE(mixed);
    const bool other_names = mixed.find("\"mixed\"") != std::string::npos;
    const bool other_target = mixed.find("target") != std::string::npos, train_only = mixed.ends_with("TRAIN }");
    const std::string target = other_target && !train_only ? "target" : "label";
    const std::string images = other_names ? "mixed" : "data";
    const ScoringNet scoring = Scoring(R"(
layer { name: "d" type: "Data" top: "data" top: "label" }
layer { name: "mix" type: "MixUp" bottom: "data" bottom: "label" mixup_param { num_classes: 4 } )" +
                                       mixed + R"( }
layer { name: "ip" type: "InnerProduct" bottom: ")" +
                                       images + R"(" top: "ip" inner_product_param { num_output: 4 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: ")" +
                                       target + R"(" top: "loss" }
)");
    EXPECT_EQ(scoring.scores, "loss probabilities");
    const Classifier classifier(scoring, Numbers(), {});
    EXPECT_TRUE(classifier.probabilities());
    EXPECT_EQ(classifier.classes(), 4);
  }
}

TEST(ScoringNet, SaysWhatMeasuresSequences) {
  const std::string net = R"(layer { name: "d" type: "Data" top: "data" top: "label" }
layer { name: "steps" type: "Permute" bottom: "data" top: "steps" }
layer { name: "ctc" type: "CtcLoss" bottom: "steps" bottom: "label" top: "ctc" }
)";
  try {
    Scoring(net);
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("net.prototxt:3:21: error: layer \"ctc\" (CtcLoss) reads sequences of "
                        "labels, and no classes: crema test measures such a net"),
              std::string::npos)
        << error.what();
  }
}

TEST(ScoringNet, RefusesWhatTakesNoImages) {
  EXPECT_THROW(Scoring("name: \"empty\""), UserError);
  EXPECT_THROW(Scoring("layer { name: \"i\" type: \"Input\" top: \"a\" top: \"b\" }"), UserError);
  EXPECT_THROW(
      Scoring("layer { name: \"i\" type: \"Input\" top: \"a\" } layer { name: \"j\" type: \"Input\" top: \"b\" }"),
      UserError);
  EXPECT_THROW(Scoring("layer { name: \"d\" type: \"Data\" top: \"data\" top: \"label\" }"), UserError);  // no scores
  const ScoringNet words = Scoring(
      "layer { name: \"i\" type: \"Input\" top: \"a\" input_param { shape { dim: 5 dim: 4 } } }"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"a\" top: \"ip\" inner_product_param { num_output: 2 } }");
  EXPECT_THROW(Classifier(words, Numbers(), {}), UserError);
}

TEST(Classifier, LeavesObjectsToDetect) {
  const std::string text =
      "layer { name: \"i\" type: \"Input\" top: \"a\" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }"
      "layer { name: \"c\" type: \"Convolution\" bottom: \"a\" top: \"c\""
      "  convolution_param { num_output: 18 kernel_size: 1 } }"
      "layer { name: \"y\" type: \"Yolov3DetectionOutput\" bottom: \"c\" top: \"y\""
      "  yolov3_detection_output_param { num_classes: 1 biases: 1 biases: 2 biases: 3 biases: 4 biases: 5 biases: 6"
      "    mask: 0 mask: 1 mask: 2 mask_group_num: 1 anchors_scale: 8 } }";
  testing::ExpectThrows<UserError>([&] { Classifier(Scoring(text), Numbers(), {}); },
                                   {"it finds objects, which crema detect shows"});
}

TEST(Classifier, AsksWhichOutputHoldsTheScores) {
  const std::string text =
      "layer { name: \"i\" type: \"Input\" top: \"a\" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }"
      "layer { name: \"x\" type: \"InnerProduct\" bottom: \"a\" top: \"x\" inner_product_param { num_output: 2 } }"
      "layer { name: \"y\" type: \"InnerProduct\" bottom: \"a\" top: \"y\" inner_product_param { num_output: 3 } }";
  try {
    Classifier(Scoring(text), Numbers(), {});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("\"x 10x2\", \"y 10x3\"; say which with --blob"), std::string::npos)
        << error.what();
  }
  ImageRunOptions options;
  options.net.outputs = {"y"};
  EXPECT_EQ(Classifier(Scoring(text), Numbers(), options).classes(), 3);
}

}  // namespace
}  // namespace crema
