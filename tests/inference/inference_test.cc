// How images become a net's input, and training nets nets that score.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/files.h"
#include "data/data_testing.h"
#include "data/mean_file.h"
#include "image/codec.h"
#include "inference/classifier.h"
#include "inference/image_batcher.h"
#include "inference/image_preparation.h"
#include "inference/scoring_net.h"
#include "inference/small_images.h"
#include "temporary_folder.h"

namespace crema {
namespace {

// What the net sees of the image, or what is wrong with it.
struct Prepared {
  std::vector<float> values;
  std::string problem;
};

Prepared FromFile(const std::string& param, const Image& image, const ImageSize& input) {
  const ImagePreparation preparation(Param(param), "", input);
  PreparationBuffers buffers;
  Prepared prepared{std::vector<float>(input.count()), ""};
  prepared.problem = preparation.FromFile(EncodePng(image), false, &buffers, prepared.values.data());
  return prepared;
}

Prepared FromRecord(const std::string& param, const Image& image, const ImageSize& input) {
  const ImagePreparation preparation(Param(param), "", input);
  PreparationBuffers buffers;
  DatumView record;
  record.size = {image.channels, image.height, image.width};
  record.data = {image.pixels.data(), image.size()};
  Prepared prepared{std::vector<float>(input.count()), ""};
  prepared.problem = preparation.FromRecord(record, &buffers, prepared.values.data());
  return prepared;
}

TEST(ImagePreparation, StretchesToTheInputWhereNothingIsSaid) {
  // Halves are means of four pixels.
  EXPECT_EQ(FromFile("", Ramp(4, 4), {1, 2, 2}).values, (std::vector<float>{6, 8, 26, 28}));
  EXPECT_EQ(FromRecord("scale: 2", Ramp(4, 4), {1, 2, 2}).values, (std::vector<float>{12, 16, 52, 56}));
}

TEST(ImagePreparation, CropsFilesAfterTheShorterSideAndRecordsAsTheyAre) {
  // 4x8: the shorter side becomes 2, so 2x4, of which the middle is kept.
  EXPECT_EQ(FromFile("crop_size: 2", Ramp(4, 8), {1, 2, 2}).values, (std::vector<float>{8, 10, 28, 30}));
  EXPECT_EQ(FromRecord("crop_size: 2", Ramp(4, 8), {1, 2, 2}).values, (std::vector<float>{13, 14, 23, 24}));
  EXPECT_EQ(FromFile("crop_size: 2 resize_shorter_side: 4", Ramp(4, 8), {1, 2, 2}).values,
            (std::vector<float>{13, 14, 23, 24}));
  EXPECT_EQ(FromRecord("crop_size: 2 resize_height: 2 resize_width: 4", Ramp(4, 8), {1, 2, 2}).values,
            (std::vector<float>{8, 10, 28, 30}));
}

TEST(ImagePreparation, TakesTheMiddleOfALargerMeanImage) {
  const TemporaryFolder folder;
  MeanImage mean;
  mean.shape = Shape{1, 4, 4};
  for (int i = 0; i < 16; ++i) mean.values.push_back(static_cast<float>(i));
  WriteMean(mean, folder / "mean");
  const auto prepared = [&](const ImageSize& input) {
    const ImagePreparation preparation(Param("mean_file: \"mean\""), folder / "mean", input);
    PreparationBuffers buffers;
    Prepared result{std::vector<float>(input.count()), ""};
    result.problem = preparation.FromFile(EncodePng(Ramp(4, 4)), false, &buffers, result.values.data());
    return result;
  };
  // Rows of the image differ by 10, of the mean by 4.
  EXPECT_EQ(prepared({1, 2, 2}).values, (std::vector<float>{6, 6, 12, 12}));
  EXPECT_EQ(prepared({1, 4, 4}).values, (std::vector<float>{0, 0, 0, 0, 6, 6, 6, 6, 12, 12, 12, 12, 18, 18, 18, 18}));
  EXPECT_NE(prepared({1, 2, 3}).problem.find("comes out as 1x4x4"), std::string::npos);
}

TEST(ImagePreparation, NothingIsRandomAndPaddingCounts) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(FromRecord("mirror: true mirror_vertical: true max_rotation_angle: 180 random_erasing { probability: 1 }",
                         Ramp(2, 2), {1, 2, 2})
                  .values,
              (std::vector<float>{0, 1, 10, 11}));
  }
  EXPECT_EQ(FromRecord("pad: 1 crop_size: 4", Ramp(2, 2), {1, 4, 4}).values,
            (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0, 0, 10, 11, 0, 0, 0, 0, 0}));
}

TEST(ImagePreparation, SaysWhatDoesNotFit) {
  EXPECT_THROW(FromFile("crop_size: 3", Ramp(4, 4), {1, 2, 2}), UserError);
  EXPECT_THROW(FromFile("resize_height: 3", Ramp(4, 4), {1, 2, 2}), UserError);
  EXPECT_THROW(FromFile("resize_height: 3 resize_width: 3 resize_shorter_side: 3", Ramp(4, 4), {1, 2, 2}), UserError);
  EXPECT_NE(FromFile("resize_height: 3 resize_width: 3", Ramp(4, 4), {1, 2, 2}).problem.find("comes out as 1x3x3"),
            std::string::npos);
  EXPECT_NE(FromRecord("", Ramp(2, 2), {3, 2, 2}).problem.find("has 1 channels, but the net's input has 3"),
            std::string::npos);
  EXPECT_EQ(FromFile("mean_value: 3", Ramp(2, 2), {1, 2, 2}).problem, "");
  for (const std::string field : {"mean_value", "std_value"}) {
    testing::ExpectThrows<UserError>(
        [&] {
          FromFile(field + ": 1 " + field + ": 2 " + field + ": 3", Ramp(2, 2), {1, 2, 2});
        },
        {"3 " + field + " fields", "1x2x2", "one per channel"});
  }
  PreparationBuffers buffers;
  float out[4];
  EXPECT_FALSE(
      ImagePreparation({}, "", {1, 2, 2}).FromFile(std::vector<uint8_t>{1, 2, 3}, false, &buffers, out).empty());
}

TEST(ImagePreparation, ChangedFieldsReplaceWaysOfResizingAndMeansAsAWhole) {
  const TransformationParameter changed =
      Changed(Param("mean_value: 1 mean_value: 2 resize_height: 5 resize_width: 6 scale: 3 crop_size: 4"),
              Param("mean_value: 7 resize_shorter_side: 8"));
  EXPECT_EQ(changed.SerializeAsString(),
            Param("mean_value: 7 resize_shorter_side: 8 scale: 3 crop_size: 4").SerializeAsString());
}

// Images in memory: the label is the number, each third one is broken.
class Numbers : public ImageItems {
 public:
  uint64_t count() const override { return 10; }
  std::string Name(uint64_t i) const override { return "image " + std::to_string(i); }
  std::optional<ImageSize> Size(uint64_t) const override { return ImageSize{1, 1, 2}; }
  std::string Load(uint64_t i, const ImagePreparation&, PreparationBuffers*, float* out,
                   ItemLabel* label) const override {
    out[0] = out[1] = static_cast<float>(i + 1);
    label->number = static_cast<int64_t>(i);
    return i % 3 == 2 ? "broken" : "";
  }
};

TEST(ImagePreparation, KeepsProportionsWhereResizeParamDoes) {
  const std::string fit = "resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 4 width: 2 pad_value: 9 }";
  const std::vector<float> expected = {9, 9, 6, 8, 26, 28, 9, 9};
  EXPECT_EQ(FromFile(fit, Ramp(4, 4), {1, 4, 2}).values, expected);
  EXPECT_EQ(FromRecord(fit, Ramp(4, 4), {1, 4, 2}).values, expected);
  EXPECT_EQ(ImagePreparation(Param(fit), "", {1, 4, 2}).PlaceInInput({4, 4}), (ImageArea{1, 0, 2, 2}));
  EXPECT_EQ(ImagePreparation({}, "", {1, 4, 2}).PlaceInInput({4, 4}), (ImageArea{0, 0, 4, 2}));
  testing::ExpectThrows<UserError>(
      [&] {
        FromFile("resize_param { height: 4 width: 2 pad_value: 1 pad_value: 2 }", Ramp(4, 4), {1, 4, 2});
      },
      {"2 resize_param.pad_value fields", "1x4x2"});
  // Another size is a size of the same kind.
  const TransformationParameter larger = Changed(Param(fit), Param("resize_height: 8 resize_width: 6"));
  EXPECT_EQ(larger.SerializeAsString(),
            Param("resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 8 width: 6 pad_value: 9 }")
                .SerializeAsString());
  EXPECT_EQ(Changed(Param(fit), Param("resize_shorter_side: 8")).SerializeAsString(),
            Param("resize_shorter_side: 8").SerializeAsString());
}

TEST(ImageBatcher, DeliversAllImagesOnceAndZerosForBrokenOnes) {
  const auto preparation = std::make_shared<const ImagePreparation>(TransformationParameter(), "", ImageSize{1, 1, 2});
  for (const int threads : {1, 4}) {
    ImageBatcher batcher(std::make_shared<Numbers>(), preparation, 4, threads);
    ImageBatch batch;
    uint64_t seen = 0;
    while (batcher.Next(&batch)) {
      EXPECT_EQ(batch.first, seen);
      EXPECT_EQ(batch.count, seen == 8 ? 2 : 4);
      for (int64_t row = 0; row < 4; ++row, ++seen) {
        const bool there = row < batch.count, broken = there && seen % 3 == 2;
        EXPECT_EQ(batch.data[row * 2 + 1], there && !broken ? static_cast<float>(seen + 1) : 0) << seen;
        if (!there) continue;
        EXPECT_EQ(batch.labels[row].number, static_cast<int64_t>(seen));
        EXPECT_EQ(batch.problems[row], broken ? "broken" : "");
      }
    }
    EXPECT_EQ(seen, 12u);
    EXPECT_FALSE(batcher.Next(&batch));
  }
}

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
    try {
      MakeScoringNet(file, "net.prototxt", options);
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
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
