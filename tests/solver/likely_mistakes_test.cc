// Trainings that run, and are seldom meant.
#include "solver/checks/likely_mistakes.h"

#include <gtest/gtest.h>

#include "solver/training_test.h"

namespace crema {
namespace {

class LikelyMistakesOf : public SmallTraining {
 protected:
  LikelyMistakesOf() { Replace("batch_size: 4", "batch_size: 3"); }

  void Replace(const std::string& what, const std::string& by) {
    size_t at = net_.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    for (; at != std::string::npos; at = net_.find(what, at + by.size())) net_.replace(at, what.size(), by);
  }
  void InsertBefore(const std::string& layer, const std::string& text) {
    const size_t at = net_.find("layer { name: \"" + layer + "\"");
    ASSERT_NE(at, std::string::npos) << layer;
    net_.insert(at, text + "\n");
  }
  std::string Told(const std::string& more = "", SolverOptions options = {}) {
    folder_.Write("net.prototxt", net_);
    const std::string tests = more.find("test_iter") == std::string::npos ? "test_iter: 6 test_interval: 9 " : "";
    Make(SolverText(tests + more, 10), std::move(options));
    return recorder_.notices;
  }
  void ExpectTold(const std::string& what, const std::string& more = "") {
    const std::string told = Told(more);
    EXPECT_NE(told.find(what), std::string::npos) << told;
  }

  std::string net_ = kSmallNet;
};

TEST_F(LikelyMistakesOf, ASoundTrainingAreNone) { EXPECT_EQ(Told(), ""); }

TEST_F(LikelyMistakesOf, LayersThatNoLossSees) {
  Replace("type: \"SoftmaxWithLoss\" bottom: \"ip2\"", "type: \"SoftmaxWithLoss\" bottom: \"ip1\"");
  ExpectTold("no loss of the train net depends on \"ip2\", which therefore learns nothing");
}

TEST_F(LikelyMistakesOf, ASoftmaxTwice) {
  InsertBefore("loss", "layer { name: \"prob\" type: \"Softmax\" bottom: \"ip2\" top: \"prob\" }");
  Replace("type: \"SoftmaxWithLoss\" bottom: \"ip2\"", "type: \"SoftmaxWithLoss\" bottom: \"prob\"");
  ExpectTold("layer \"loss\" (SoftmaxWithLoss) contains a Softmax, and its bottom is made by one, layer \"prob\"");
}

TEST_F(LikelyMistakesOf, WeightsOfZeroBehindOthers) {
  Replace("weight_filler { type: \"xavier\" }", "");
  ExpectTold("layer \"ip2\" (InnerProduct) and, below it, layer \"ip1\" (InnerProduct) begin with weights of 0");
}

TEST_F(LikelyMistakesOf, WeightsOfZeroThatSeeOtherThanZeros) {
  Replace("weight_filler { type: \"xavier\" }", "");
  const std::string without_filler = net_;
  Replace("type: \"ReLU\"", "type: \"Sigmoid\"");
  EXPECT_EQ(Told().find("begin with weights of 0"), std::string::npos) << recorder_.notices;
  net_ = without_filler;
  Replace("num_output: 16", "num_output: 16 bias_filler { value: 0.1 }");
  EXPECT_EQ(Told().find("begin with weights of 0"), std::string::npos) << recorder_.notices;
}

TEST_F(LikelyMistakesOf, WeightsOfZeroThatLearnThroughAnotherLayer) {
  Replace("weight_filler { type: \"xavier\" }", "");
  InsertBefore("loss",
               "layer { name: \"aux\" type: \"InnerProduct\" bottom: \"ip1\" top: \"aux\" inner_product_param { "
               "num_output: 3 weight_filler { type: \"xavier\" } } } layer { name: \"aux_loss\" type: "
               "\"SoftmaxWithLoss\" bottom: \"aux\" bottom: \"label\" top: \"aux_loss\" }");
  EXPECT_EQ(Told().find("begin with weights of 0"), std::string::npos) << recorder_.notices;
}

TEST_F(LikelyMistakesOf, InterpolationThatAddsUpChannels) {
  Replace("bottom: \"data\" top: \"ip1\"", "bottom: \"up\" top: \"ip1\"");
  InsertBefore("ip1",
               "layer { name: \"three\" type: \"Convolution\" bottom: \"data\" top: \"three\" convolution_param { "
               "num_output: 3 kernel_size: 1 weight_filler { type: \"xavier\" } } } layer { name: \"up\" type: "
               "\"Deconvolution\" bottom: \"three\" top: \"up\" convolution_param { num_output: 3 kernel_size: 4 "
               "stride: 2 pad: 1 weight_filler { type: \"bilinear\" } } }");
  ExpectTold("layer \"up\" (Deconvolution) begins with weight_filler { type: \"bilinear\" } and group: 1");
  Replace("num_output: 3 kernel_size: 4", "num_output: 3 group: 3 kernel_size: 4");
  EXPECT_EQ(Told(), "");
}

TEST_F(LikelyMistakesOf, StatisticsThatMoveAmongFrozenLayers) {
  Replace("bottom: \"data\" top: \"ip1\"", "bottom: \"bn\" top: \"ip1\"");
  const std::string frozen = " param { lr_mult: 0 } param { lr_mult: 0 } ";
  InsertBefore(
      "ip1",
      "layer { name: \"fixed\" type: \"Convolution\" bottom: \"data\" top: \"fixed\" " + frozen +
          "convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: \"xavier\" } } } layer { name: "
          "\"bn\" type: \"BatchNorm\" bottom: \"fixed\" top: \"bn\" batch_norm_param { } } layer { name: "
          "\"scale\" type: \"Scale\" bottom: \"bn\" top: \"bn\" " +
          frozen + " scale_param { bias_term: true } }");
  ExpectTold("the layers around \"bn\" have lr_mult: 0, but the statistics of BatchNorm go on");
  const std::string moving = net_;
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"batch_norm_param { }", "batch_norm_param { use_global_stats: true }"},
      {"top: \"bn\" " + frozen, "top: \"bn\" "}};
  for (const auto& [what, by] : changes) {
    net_ = moving;
    Replace(what, by);
    EXPECT_EQ(Told().find("the layers around"), std::string::npos) << recorder_.notices;
  }
}

TEST_F(LikelyMistakesOf, StepsInRandomOrder) {
  InsertBefore("loss", R"(
layer { name: "rows" type: "Reshape" bottom: "data" top: "rows" reshape_param { shape { dim: 0 dim: -1 } } }
layer { name: "parts" type: "Slice" bottom: "rows" top: "cont" top: "rest" slice_param { axis: 1 slice_point: 1 } }
layer { name: "steps" type: "Reshape" bottom: "rest" top: "steps" reshape_param { shape { dim: 0 dim: 1 dim: -1 } } }
layer { name: "lstm"
  type: "LSTM" bottom: "steps" bottom: "cont" top: "h"
  recurrent_param { num_output: 2 weight_filler { type: "xavier" } }
}
layer { name: "sum" type: "Reduction" bottom: "h" top: "sum" loss_weight: 0.1 })");
  EXPECT_EQ(Told(), "");
  Replace("backend: LMDB", "backend: LMDB shuffle: true");
  ExpectTold(
      "layer \"data\" (Data) gives records in random order (shuffle: true), and layer \"lstm\" (LSTM) takes them");
  // Numbers that are made of one record each are its, too.
  Replace("bottom: \"cont\" top: \"h\"", "bottom: \"scaled\" top: \"h\"");
  InsertBefore("lstm",
               "layer { name: \"scaled\" type: \"Power\" bottom: \"cont\" top: \"scaled\" "
               "power_param { scale: 0.5 } }");
  ExpectTold("layer \"data\" (Data) gives records in random order");
  Replace("bottom: \"scaled\" top: \"h\"", "bottom: \"cont\" top: \"h\"");
  Replace("bottom: \"cont\" top: \"scaled\"", "bottom: \"cont\" top: \"unused\"");
  // Whole sequences as records.
  Replace("bottom: \"cont\" top: \"h\"", "bottom: \"begins\" top: \"h\"");
  InsertBefore("lstm",
               "layer { name: \"begins\" type: \"ContinuationIndicator\" bottom: \"steps\" top: \"begins\" }\n"
               "layer { name: \"unread\" type: \"Silence\" bottom: \"cont\" }");
  EXPECT_EQ(Told(), "");
}

TEST_F(LikelyMistakesOf, WeightsOfZeroOfDeformableConvolutions) {
  InsertBefore("ip1",
               "layer { name: \"offsets\" type: \"Convolution\" bottom: \"data\" top: \"offsets\" "
               "convolution_param { num_output: 18 kernel_size: 3 pad: 1 } } "
               "layer { name: \"bent\" type: \"DeformableConvolution\" bottom: \"data\" bottom: \"offsets\" "
               "top: \"bent\" deformable_convolution_param { num_output: 2 kernel_size: 3 pad: 1 } } "
               "layer { name: \"plain\" type: \"Convolution\" bottom: \"bent\" top: \"plain\" "
               "convolution_param { num_output: 2 kernel_size: 1 } }");
  Replace("type: \"InnerProduct\" bottom: \"data\"", "type: \"InnerProduct\" bottom: \"plain\"");
  ExpectTold(
      "layer \"plain\" (Convolution) and, below it, layer \"bent\" (DeformableConvolution) begin with weights of 0");
}

TEST_F(LikelyMistakesOf, WeightsOfZeroAtTheTopAreSound) {
  const size_t at = net_.rfind("weight_filler { type: \"xavier\" }");
  net_.erase(at, std::string("weight_filler { type: \"xavier\" }").size());
  EXPECT_EQ(Told(), "");
}

// The filler is that of the layer which comes first.
TEST_F(LikelyMistakesOf, WeightsThatLayersShare) {
  const std::string filler = "weight_filler { type: \"xavier\" }",
                    sharing = "param { name: \"w\" } param { name: \"b\" }";
  const auto shared = [&](const std::string& layer, const std::string& bottom, const std::string& of_filler) {
    return "layer { name: \"" + layer + "\" type: \"InnerProduct\" bottom: \"" + bottom + "\" top: \"" + layer + "\" " +
           sharing + " inner_product_param { num_output: 16 " + of_filler + " } } ";
  };
  const std::string sound = net_;
  InsertBefore("ip2", shared("a", "ip1", filler) + shared("b", "a", ""));
  Replace("bottom: \"ip1\" top: \"ip2\"", "bottom: \"b\" top: \"ip2\"");
  EXPECT_EQ(Told(), "");
  net_ = sound;
  InsertBefore("ip2", shared("a", "ip1", "") + shared("b", "a", filler));
  Replace("bottom: \"ip1\" top: \"ip2\"", "bottom: \"b\" top: \"ip2\"");
  ExpectTold("layer \"b\" (InnerProduct) and, below it, layer \"a\" (InnerProduct) begin with weights of 0");
}

TEST_F(LikelyMistakesOf, ANameThatIsNotShared) {
  const std::string branch = " type: \"InnerProduct\" bottom: \"ip1\" inner_product_param { num_output: 3 } ";
  InsertBefore("ip2", "layer { name: \"a\" top: \"a\" param { name: \"w\" } param { name: \"b\" }" + branch +
                          "} layer { name: \"b\" top: \"b\" param { name: \"w\" } param { name: \"bb\" }" + branch +
                          "} layer { name: \"sum\" type: \"Eltwise\" bottom: \"a\" bottom: \"b\" top: \"sum\" }");
  Replace("bottom: \"ip1\" top: \"ip2\"", "bottom: \"sum\" top: \"ip2\"");
  ExpectTold("only one layer has parameters of the name \"b\", \"bb\", while others of this net are shared");
}

TEST_F(LikelyMistakesOf, NamesSharedWithALayerOfATestNetAreSound) {
  const std::string named = "type: \"InnerProduct\" param { name: \"w\" } param { name: \"b\" } bottom: ";
  const auto twin = [](const std::string& layer, const std::string& share) {
    return "layer { name: \"" + layer + "\" type: \"InnerProduct\" param { name: \"" + share +
           "\" } bottom: \"ip1\" top: \"" + layer + "\" inner_product_param { num_output: 3 bias_term: false " +
           "weight_filler { type: \"xavier\" } } } layer { name: \"hush_" + layer + "\" type: \"Silence\" bottom: \"" +
           layer + "\" } ";
  };
  // Some of the train net are shared there.
  InsertBefore("loss", twin("c", "cc") + twin("d", "cc"));
  Replace("type: \"InnerProduct\" bottom: \"ip1\" top: \"ip2\"", named + "\"ip1\" top: \"ip2\"");
  const std::string lonely = "only one layer has parameters of the name ";
  EXPECT_NE(Told().find(lonely + "\"b\", \"w\", while"), std::string::npos) << recorder_.notices;
  InsertBefore("accuracy", "layer { name: \"copy\" include { phase: TEST } top: \"copy\" " + named +
                               "\"ip1\" inner_product_param { num_output: 3 } }");
  EXPECT_EQ(Told().find(lonely), std::string::npos) << recorder_.notices;
}

TEST_F(LikelyMistakesOf, StatisticsThatNobodyGave) {
  InsertBefore("relu1",
               "layer { name: \"norm\" type: \"BatchNorm\" bottom: \"ip1\" top: \"ip1\" "
               "batch_norm_param { use_global_stats: true } }");
  ExpectTold("BatchNorm \"norm\" of the train net: use_global_stats: true");
}

TEST_F(LikelyMistakesOf, StatisticsThatOnlyTheFirstOfAShareIsGiven) {
  const auto norm = [](const std::string& layer, bool global) {
    std::string text = "layer { name: \"" + layer + "\" type: \"BatchNorm\" bottom: \"ip1\" top: \"ip1\" ";
    for (const char* name : {"m", "v", "f"}) text += std::string("param { name: \"") + name + "\" lr_mult: 0 } ";
    return text + "batch_norm_param { use_global_stats: " + (global ? "true" : "false") + " } }";
  };
  const std::string plain = net_;
  InsertBefore("relu1", norm("norm", false));
  folder_.Write("net.prototxt", net_);
  Train("test_iter: 6 test_interval: 9", 10);
  net_ = plain;
  InsertBefore("relu1", norm("norm", true) + norm("again", true));
  ExpectTold("BatchNorm \"again\", \"norm\" of the train net: use_global_stats: true");
  SolverOptions options;
  options.weights = {folder_ / "snap_iter_10.caffemodel"};
  EXPECT_EQ(Told("", std::move(options)), "");
}

TEST_F(LikelyMistakesOf, OutputsOfManyNumbers) {
  Replace("num_output: 16", "num_output: 200");
  Replace("bottom: \"ip1\" top: \"ip1\" }", "bottom: \"ip1\" top: \"r1\" }");
  ExpectTold("no layer reads \"r1\", which layer \"relu1\" (ReLU) makes, so that it is an output of the train net");
}

TEST_F(LikelyMistakesOf, MeasuresOfDetectorsAreSound) {
  for (const char* made :
       {"found\" include { phase: TEST } dummy_data_param { shape { dim: 1 dim: 1 dim: 2 dim: 7 }",
        "boxes\" include { phase: TEST } dummy_data_param { shape { dim: 1 dim: 1 dim: 2 dim: 8 }"}) {
    const std::string top = std::string(made).substr(0, 5);
    net_ += "layer { name: \"" + top + "\" type: \"DummyData\" top: \"" + made + " } }\n";
  }
  net_ +=
      "layer { name: \"eval\" type: \"DetectionEvaluate\" bottom: \"found\" bottom: \"boxes\" top: \"eval\" "
      "include { phase: TEST } detection_evaluate_param { num_classes: 400 } }\n";
  EXPECT_EQ(Told("eval_type: \"detection\" "), "");
}

TEST_F(LikelyMistakesOf, TestsOfOtherNumbers) {
  const std::string scale = "transform_param { scale: 0.00390625 }";
  const size_t of_test = net_.rfind(scale);
  net_.replace(of_test, scale.size(), "transform_param { mean_value: 3 mirror: true }");
  ExpectTold(
      "layer \"data\" (Data) of test net #0 and layer \"data\" (Data) of the train net have another \"mean_value\", "
      "\"scale\"");
  ExpectTold("layer \"data\" (Data) of test net #0 mirrors images at random");
}

TEST_F(LikelyMistakesOf, TestsOfWhatIsLearnt) {
  Replace("test_lmdb", "train_lmdb");
  ExpectTold("test net #0 reads \"train_lmdb\", which the train net learns");
}

// Told behind the first test, since test data are not opened before.
TEST_F(LikelyMistakesOf, TestsOfAPartOfTheRecords) {
  folder_.Write("net.prototxt", net_);
  Train("test_iter: 4 test_interval: 2", 5);
  const std::string note =
      "note: each test of test net #0 reads 12 records, while layer \"data\" has 18, and goes on where the one before "
      "ended: "
      "in_epochs { test_iter: 1 } reads them all, and the same ones every time (6 batches)\n";
  EXPECT_EQ(recorder_.notices, note);
  Train("test_iter: 12 test_interval: 2", 5);
  EXPECT_EQ(recorder_.notices, "");
}

TEST_F(LikelyMistakesOf, StepsBehindTheEnd) {
  ExpectTold("max_iter 10 comes before the first step of lr_policy \"step\"",
             "lr_policy: \"step\" gamma: 0.1 stepsize: 10");
  EXPECT_EQ(Told("lr_policy: \"step\" gamma: 0.1 stepsize: 9"), "");
}

TEST_F(LikelyMistakesOf, WhatWeightsFilesGiveIsKnown) {
  Train("test_iter: 6 test_interval: 9", 10);
  Replace("weight_filler { type: \"xavier\" }", "");
  SolverOptions options;
  options.weights = {folder_ / "snap_iter_10.caffemodel"};
  EXPECT_EQ(Told("", std::move(options)), "");
}

}  // namespace
}  // namespace crema
