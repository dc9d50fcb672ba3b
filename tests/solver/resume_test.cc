// A run that was broken off and resumed equals one that never stopped, bit for bit.
#include "solver/resume_test.h"

#include <gtest/gtest.h>

#include "crema/files.h"
#include "errors.h"
#include "files.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

TEST_F(Resume, IsExactWithEverythingOn) {
  ExpectSame(
      "momentum: 0.9 weight_decay: 0.01 iter_size: 2 average_loss: 7 display: 3 clip_gradients: 0.5\n"
      "test_iter: 3 test_interval: 7 test_initialization: false\n");
}

TEST_F(Resume, IsExactWithLayersOfOneName) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"ip2\""), R"(layer { name: "ip1" type: "InnerProduct" bottom: "ip1" top: "ip1"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
)");
  folder_.Write("net.prototxt", net);
  ExpectSame("momentum: 0.9 test_iter: 3 test_interval: 7\n");
}

TEST_F(Resume, IsExactWithMixedImages) {
  folder_.Write("net.prototxt", MixUpNet("alpha: 1 cutmix_alpha: 1"));
  ExpectSame("momentum: 0.9 iter_size: 2 test_iter: 3 test_interval: 7\n");
}

TEST_F(Resume, IsExactForEveryRule) {
  for (const char* type : {"Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW"}) {
    SCOPED_TRACE(type);
    const bool momentum = std::string(type) != "AdaGrad" && std::string(type) != "RMSProp";
    ExpectSame("type: \"" + std::string(type) + "\" delta: 1e-6 " +
               (momentum ? "momentum: 0.9 weight_decay: 0.02" : ""));
  }
}

TEST_F(Resume, IsExactWithLocalRates) {
  ExpectSame("momentum: 0.9 weight_decay: 0.01 larc: true larc_eta: 0.02 lr_policy: \"cosine\" warmup_iter: 14\n");
}

TEST_F(Resume, IsExactWithAMomentumThatRises) {
  ExpectSame("momentum: 0.1 momentum_policy: \"poly\" max_momentum: 0.9 type: \"Nesterov\"\n");
}

TEST_F(Resume, IsExactWithARateThatGoesByTheLoss) {
  std::string windows = "lr_policy: \"plateau\" gamma: 0.7 base_lr: 0.3 momentum: 0.9 average_loss: 4 display: 1 ";
  for (int i = 0; i < 20; ++i) windows += "plateau_winsize: 2 ";
  ExpectSame(windows);
  const SolverState half = LoadState(folder_ / "snap_iter_10.solverstate").state;
  EXPECT_GT(half.current_step(), 0) << "the rate did not drop before";
  EXPECT_GT(half.minimum_loss(), 0);
  EXPECT_GT(half.iter_last_event(), 0);
  EXPECT_FALSE(recorder_.steps.empty()) << "the rate did not drop behind it";
  EXPECT_EQ(LoadState(folder_ / "snap_iter_20.solverstate").state.current_step(),
            half.current_step() + static_cast<int>(recorder_.steps.size()));
}

TEST_F(Resume, IsExactWithADrawnSeed) {
  Train("", 1);
  std::string text = SolverText("snapshot: 5", 10);
  text.replace(text.find("random_seed: 5"), 14, "");
  Make(text)->Train();
  const std::string model = ReadFile(folder_ / "snap_iter_10.caffemodel");
  Make(text, {.snapshot = folder_ / "snap_iter_5.solverstate"})->Train();
  EXPECT_TRUE(ReadFile(folder_ / "snap_iter_10.caffemodel") == model);
}

TEST_F(Resume, AutoStartsFreshAndThenGoesOn) {
  Train("", 5, {.snapshot = "auto"});
  EXPECT_NE(recorder_.notices.find("a fresh start"), std::string::npos) << recorder_.notices;
  EXPECT_TRUE(recorder_.restored.empty());
  Train("", 10, {.snapshot = "auto"});
  ASSERT_EQ(recorder_.restored.size(), 1u);
  EXPECT_EQ(recorder_.restored[0].iteration, 5);
  EXPECT_EQ(recorder_.iterations.size(), 5u);
  Train("", 10, {.snapshot = "auto"});
  EXPECT_EQ(recorder_.iterations.size(), 0u);
  EXPECT_NE(recorder_.notices.find("nothing is left to train"), std::string::npos) << recorder_.notices;
}

TEST_F(Resume, RefusesWhatDoesNotFit) {
  Train("momentum: 0.9", 3);
  const std::string state = folder_ / "snap_iter_3.solverstate", model = folder_ / "snap_iter_3.caffemodel";
  const auto failure = [&](const std::string& more, SolverOptions options) {
    return ThrownBy<UserError>([&] { Make(SolverText(more, 5), std::move(options)); });
  };
  EXPECT_NE(failure("type: \"Adam\" momentum: 0.9", {.snapshot = state}).find("written by solver type \"SGD\""),
            std::string::npos);
  EXPECT_NE(failure("", {.snapshot = model}).find("resume from " + state), std::string::npos);
  EXPECT_NE(failure("", {.weights = {state}}), "");
  EXPECT_NE(failure("", {.weights = {model}, .snapshot = state}).find("give one of the two"), std::string::npos);
  std::string net = kSmallNet;
  net.replace(net.find("num_output: 16"), 14, "num_output: 17");
  folder_.Write("net.prototxt", net);
  EXPECT_NE(
      failure("momentum: 0.9", {.snapshot = state})
          .find("blob 0 is 17x36 here but 16x36 in the weights file; give weights of this net, or, to train the layer "
                "afresh, rename it and start a new training from these with --weights"),
      std::string::npos);
}

TEST_F(Resume, TellsOfOtherData) {
  const std::string tests = "test_iter: 3 test_interval: 3 ";
  Train(tests, 3);
  const SolverOptions resumed = {.snapshot = folder_ / "snap_iter_3.solverstate"};
  Train(tests, 4, resumed);
  EXPECT_EQ(recorder_.notices.find("data layer"), std::string::npos) << recorder_.notices;

  std::string net = kSmallNet;
  net.replace(net.find("batch_size: 7"), 13, "batch_size: 5");
  folder_.Write("net.prototxt", net);
  fs::remove_all(folder_ / "test_lmdb");
  WriteClasses(folder_ / "test_lmdb", 21);
  Train(tests, 4, resumed);
  for (const char* part :
       {"data layer \"data\" of the train net takes 5 a batch instead of 7 when the snapshot was written",
        "data layer \"data\" of the test0 net has 21 records, and had 18 when the snapshot was"}) {
    EXPECT_NE(recorder_.notices.find(part), std::string::npos) << recorder_.notices;
  }
}

TEST_F(Resume, ASnapshotBeforeTheFirstTestOpensNoTestData) {
  const std::string tests = "snapshot: 2 test_iter: 3 test_interval: 5 test_initialization: false ";
  const auto solver = Make(SolverText(tests, 4));
  fs::remove_all(folder_ / "test_lmdb");
  fs::create_directory(folder_ / "test_lmdb");
  folder_.Write("test_lmdb/data.mdb", "no database");
  EXPECT_EQ(solver->Train().iteration, 4);
  const SolverState state = LoadState(folder_ / "snap_iter_2.solverstate").state;
  ASSERT_EQ(state.data_position_size(), 2);
  EXPECT_EQ(state.data_position(0).epoch_records(), 60u);
  EXPECT_EQ(state.data_position(1).net(), "test0");
  EXPECT_FALSE(state.data_position(1).has_epoch_records());

  fs::remove_all(folder_ / "test_lmdb");
  WriteClasses(folder_ / "test_lmdb", 18);
  // With tests in between, resumed before or after the first of them, the states are the same.
  for (const char* from : {"snap_iter_2.solverstate", "snap_iter_6.solverstate"}) {
    Train(tests, 8);
    const std::string whole = ReadFile(folder_ / "snap_iter_8.solverstate");
    Train(tests, 8, {.snapshot = folder_ / from});
    EXPECT_EQ(ReadFile(folder_ / "snap_iter_8.solverstate"), whole) << from;
  }
}

// Weights and histories lie as the convolution kernels want them while training, and plain in the files.
TEST_F(Resume, IsExactWithLaidOutWeights) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"ip1\""), R"(
layer { name: "c1" type: "Convolution" bottom: "data" top: "c1"
        convolution_param { num_output: 20 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "c2" type: "Convolution" bottom: "c1" top: "c2"
        convolution_param { num_output: 24 group: 2 kernel_size: 1 bias_term: false weight_filler { type: "msra" } } }
layer { name: "c3" type: "Convolution" bottom: "c2" top: "c3"
        convolution_param { num_output: 18 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
)");
  net.replace(net.find("bottom: \"data\" top: \"ip1\""), 14, "bottom: \"c3\"");
  folder_.Write("net.prototxt", net);
  for (const std::string type : {"SGD", "Adam"}) {
    ExpectSame("momentum: 0.9 weight_decay: 0.01 clip_gradients: 0.5 base_lr: 0.01 type: \"" + type +
               "\"\ntest_iter: 3 test_interval: 7 test_initialization: false\n");
  }
  const auto solver = Make(SolverText("", 20));
  const Parameter& weights = solver->net().parameters()[3];
  ASSERT_EQ(weights.name(), "c3[0]");
  EXPECT_NE(weights.layout, nullptr);
  const LoadedState loaded = LoadState(folder_ / "snap_iter_20.solverstate");
  const BlobProto& history = loaded.state.history(3);
  EXPECT_EQ(Shape({history.shape().dim().begin(), history.shape().dim().end()}), weights.shape);
  EXPECT_EQ(history.data_size(), weights.shape.count());
}

TEST_F(Resume, IsExactWithRecurrentLayers) {
  folder_.Write("net.prototxt", kRecurrentNet);
  ExpectSame("momentum: 0.9 iter_size: 2 display: 3 test_iter: 3 test_interval: 7 test_initialization: false\n");
  const SolverState state = LoadState(folder_ / "snap_iter_10.solverstate").state;
  ASSERT_EQ(state.recurrent_state_size(), 2);
  for (const RecurrentState& recurrent : state.recurrent_state()) {
    EXPECT_EQ(recurrent.layer(), "lstm");
    EXPECT_EQ(recurrent.value_size(), 2 * 6 * 5);
    EXPECT_NE(recurrent.value(7), 0);
  }
  EXPECT_EQ(state.recurrent_state(0).net(), "train");
  EXPECT_EQ(state.recurrent_state(1).net(), "test0");
}

TEST_F(Resume, IsExactWithCountsOverAllBatches) {
  folder_.Write("net.prototxt", PixelsNet(false));
  ExpectSame("momentum: 0.9 iter_size: 2 display: 3 test_iter: 3 test_interval: 7 test_initialization: false\n");
  const SolverState state = LoadState(folder_ / "snap_iter_20.solverstate").state;
  ASSERT_EQ(state.recurrent_state_size(), 2);
  // Of each class the right ones, those of its label, those told, in two numbers each.
  const RecurrentState &train = state.recurrent_state(0), &test = state.recurrent_state(1);
  EXPECT_EQ(train.net(), "train");
  ASSERT_EQ(train.value_size(), 3 * 6);
  EXPECT_EQ(train.value(3) + train.value(9) + train.value(15), 20 * 2 * 7);
  EXPECT_EQ(test.net(), "test0");
  EXPECT_EQ(test.value(3) + test.value(9) + test.value(15), 3 * 4) << "those of the last test";
}

// As where a test is broken off.
TEST_F(Resume, RecurrentLayersTestAgainFromWhereTheTestBegan) {
  folder_.Write("net.prototxt", kRecurrentNet);
  const std::string settings = "test_iter: 3 test_interval: 5 test_initialization: false\n";
  Train(settings, 10);
  const TestResult straight = recorder_.tests.at(1);
  int asked_while_testing = 0;
  SolverOptions stop;
  stop.requested_action = [&] {
    const bool second_test = recorder_.iterations.size() == 10 && recorder_.tests.size() == 1;
    return second_test && ++asked_while_testing == 3 ? SolverAction::kStop : SolverAction::kNone;
  };
  EXPECT_TRUE(Train(settings, 12, std::move(stop)).stopped_early);
  ASSERT_EQ(recorder_.tests.size(), 1u);
  Train(settings, 12, {.snapshot = folder_ / "snap_iter_10.solverstate"});
  ASSERT_EQ(recorder_.tests.size(), 1u);
  EXPECT_EQ(recorder_.tests[0].outputs[1].value, straight.outputs[1].value);
}

TEST_F(Resume, ADifferentSeedIsTold) {
  Train("", 3);
  Train("", 5, {.snapshot = folder_ / "snap_iter_3.solverstate", .seed = 6});
  EXPECT_NE(recorder_.notices.find("seed is now 6 but the snapshot was written with 5"), std::string::npos)
      << recorder_.notices;
}

TEST_F(Resume, WeightsAreCopiedInOrder) {
  Train("", 2);
  const std::string model = folder_ / "snap_iter_2.caffemodel";
  fs::copy(model, folder_ / "second.caffemodel");
  const auto solver =
      Make(SolverText("weights: \"absent.caffemodel\"", 2), {.weights = {model + ", second.caffemodel"}});
  ASSERT_EQ(recorder_.weights.size(), 2u);
  EXPECT_EQ(recorder_.weights[0].path, model);
  EXPECT_EQ(recorder_.weights[1].path, folder_ / "second.caffemodel");
  EXPECT_EQ(recorder_.weights[0].report.copied, (std::vector<std::string>{"ip1", "ip2"}));
  EXPECT_EQ(solver->iteration(), 0);
  const LayerWeights saved = ReadWeights(model)[0];
  std::vector<float> values(saved.blobs[0].data.size());
  solver->net().parameters()[0].CopyDataTo(values.data());
  EXPECT_EQ(values[3], saved.blobs[0].data[3]);
}

TEST_F(Resume, WhatAnyFileGaveDoesNotStartAfresh) {
  Train("", 2);
  NetParameter first, second;
  ASSERT_TRUE(first.ParseFromString(ReadFile(folder_ / "snap_iter_2.caffemodel")));
  for (LayerParameter& layer : *first.mutable_layer()) {
    if (layer.name() == "ip2") layer.set_name("other");
  }
  for (const LayerParameter& layer : first.layer()) {
    if (layer.name() == "other") *second.add_layer() = layer;
  }
  const std::string one = folder_.Write("one.caffemodel", first.SerializeAsString());
  const std::string none = folder_.Write("none.caffemodel", second.SerializeAsString());
  using Names = std::vector<std::string>;
  Make(SolverText("", 2), {.weights = {one + "," + one}});
  ASSERT_EQ(recorder_.weights.size(), 2u);
  EXPECT_EQ(recorder_.weights[0].report.fresh, Names{"ip2"});
  EXPECT_EQ(recorder_.weights[1].report.fresh, Names{"ip2"});
  // By the solver's file, too.
  for (const std::string& files : {none, one + "," + none, none + "," + one}) {
    const std::string refused = none + ": error: no layer of the train net has the name of one in it";
    const auto of_flag = ThrownBy<UserError>([&] { Make(SolverText("", 2), {.weights = {files}}); });
    EXPECT_EQ(of_flag.find(refused), 0u) << of_flag;
    const auto of_file = ThrownBy<UserError>([&] { Make(SolverText("weights: \"" + files + "\"", 2), {}); });
    EXPECT_EQ(of_file.find(refused), 0u) << of_file;
  }

  const std::string whole = folder_ / "snap_iter_2.caffemodel";
  for (const std::string& files : {one + "," + whole, whole + "," + one}) {
    Make(SolverText("", 2), {.weights = {files}});
    for (const WeightsLoaded& loaded : recorder_.weights) EXPECT_EQ(loaded.report.fresh, Names()) << files;
  }
}

TEST_F(Resume, SnapshotDiffWritesGradients) {
  Train("snapshot_diff: true", 2);
  NetParameter model;
  ASSERT_TRUE(model.ParseFromString(ReadFile(folder_ / "snap_iter_2.caffemodel")));
  int with_diff = 0;
  for (const LayerParameter& layer : model.layer()) {
    for (const BlobProto& blob : layer.blobs()) with_diff += blob.diff_size() == blob.data_size();
  }
  EXPECT_EQ(with_diff, 4);
}

}  // namespace
}  // namespace crema
