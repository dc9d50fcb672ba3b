// Where the parameters of test nets come from.
#include <gtest/gtest.h>

#include <string>

#include "crema/files.h"
#include "errors.h"
#include "files.h"
#include "graph/program.h"
#include "solver/snapshots/snapshot.h"
#include "solver/training_test.h"

namespace crema {
namespace {

class TestNetParameters : public SmallTraining {
 protected:
  // Another layer in the place of ip2 in one of the two nets.
  void RenameIp2(const std::string& train, const std::string& test) {
    std::string net = kSmallNet;
    const size_t begin = net.find("layer { name: \"ip2\""), end = net.find("layer { name: \"accuracy\"");
    std::string layers;
    for (const bool of_train : {true, false}) {
      std::string layer = net.substr(begin, end - begin);
      layer.replace(layer.find("ip2"), 3, of_train ? train : test);
      layer.insert(layer.find("type"), of_train ? "include { phase: TRAIN } " : "include { phase: TEST } ");
      layers += layer;
    }
    net.replace(begin, end - begin, layers);
    folder_.Write("net.prototxt", net);
  }

  bool WarnsOf(const std::string& layer) const {
    const std::string begin =
        "layer \"" + layer + "\" (InnerProduct) of test net #0 has parameters that the train net has not";
    return recorder_.notices.find(begin) != std::string::npos;
  }

  // Into the net with a layer of a test net alone, "fixed", that training would leave as it is.
  void AddFixed(const std::string& fillers = "weight_filler { type: \"xavier\" }") {
    folder_.Write("net.prototxt", std::string(kSmallNet) +
                                      "layer { name: \"fixed\" type: \"InnerProduct\" bottom: \"ip2\" top: \"fixed\" "
                                      "include { phase: TEST } param { lr_mult: 0 } param { lr_mult: 0 } "
                                      "inner_product_param { num_output: 2 " +
                                      fillers + " } }\n");
  }
  // Weights of that layer alone and of ip2, in a file.
  std::string WriteFixed(const std::string& name) {
    const std::string path = folder_ / name;
    NetParameter weights;
    const auto add = [&weights](const char* layer, int outputs, int inputs, float value) {
      LayerParameter* const one = weights.add_layer();
      one->set_name(layer);
      for (const bool bias : {false, true}) {
        BlobProto* const blob = one->add_blobs();
        blob->mutable_shape()->add_dim(outputs);
        if (!bias) blob->mutable_shape()->add_dim(inputs);
        for (int i = 0; i < outputs * (bias ? 1 : inputs); ++i) blob->add_data(value * static_cast<float>(i - 1));
      }
    };
    add("ip2", 3, 16, 0.01f);
    add("fixed", 2, 3, 0.25f);
    WriteModel(path, weights);
    return path;
  }

  static std::vector<float> WeightsOf(const NetParameter& net, const std::string& layer) {
    for (const LayerParameter& one : net.layer()) {
      if (one.name() == layer) return {one.blobs(0).data().begin(), one.blobs(0).data().end()};
    }
    return {};
  }
};

TEST_F(TestNetParameters, ComeFromAnyLayerOfAShare) {
  Train("test_interval: 20 test_iter: 5", 40);
  const float loss = LossIn(recorder_.tests.back());
  // What shares them comes first in the test net, and is not in the train net.
  std::string net = kSmallNet;
  const std::string type = "type: \"InnerProduct\" bottom: \"ip1\" ",
                    names = "param { name: \"w\" } param { name: \"b\" } ";
  const size_t at = net.find("layer { name: \"ip2\"");
  net.insert(net.find(type, at) + type.size(), names);
  net.insert(at, "layer { name: \"first\" " + type + names +
                     "top: \"first\" include { phase: TEST } inner_product_param { num_output: 3 } }\n");
  folder_.Write("net.prototxt", net);
  Train("test_interval: 20 test_iter: 5", 40);
  EXPECT_EQ(LossIn(recorder_.tests.back()), loss);
  EXPECT_FALSE(WarnsOf("first"));
}

TEST_F(TestNetParameters, AreTakenFromWeightsFiles) {
  const auto first = Make(SolverText("test_interval: 20 test_iter: 5", 10));
  first->Train();
  const std::vector<float> trained = WeightsOf(first->net().ToProto(), "ip2");
  RenameIp2("other", "ip2");
  Train("test_interval: 20 test_iter: 5", 1);
  EXPECT_TRUE(WarnsOf("ip2"));
  const auto second =
      Make(SolverText("test_interval: 20 test_iter: 5 weights: \"" + (folder_ / "snap_iter_10.caffemodel") + "\"", 1));
  second->Train();
  EXPECT_FALSE(WarnsOf("ip2"));
  ASSERT_FALSE(trained.empty());
  EXPECT_EQ(WeightsOf(second->test_net(0).ToProto(), "ip2"), trained);
  ASSERT_EQ(recorder_.weights.size(), 1u);
  EXPECT_EQ(recorder_.weights[0].report.copied, (std::vector<std::string>{"ip1", "ip2"}));
  EXPECT_TRUE(recorder_.weights[0].report.ignored.empty());
}

TEST_F(TestNetParameters, OfAnotherNameThanTheTrainNetsAreWarnedOfWhenResuming) {
  RenameIp2("other", "ip2");
  Train("test_interval: 20 test_iter: 5", 5);
  SolverOptions options;
  options.snapshot = folder_ / "snap_iter_5.solverstate";
  Train("test_interval: 20 test_iter: 5", 6, options);
  EXPECT_TRUE(WarnsOf("ip2"));
}

// A resumed run has them without the file.
TEST_F(TestNetParameters, OfWeightsFilesAreKeptInSnapshots) {
  AddFixed();
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    SCOPED_TRACE(format);
    const std::string weights = WriteFixed("weights.caffemodel"), end = format == "HDF5" ? ".h5" : "";
    const std::string settings =
        "test_interval: 5 test_iter: 5 snapshot: 5 best { output: \"loss\" } ema { decay: 0.5 } "
        "snapshot_format: " +
        format;
    SolverOptions options;
    options.weights = {weights};
    Train(settings, 10, options);
    EXPECT_FALSE(WarnsOf("fixed"));
    const std::vector<OutputValue> without_a_break = recorder_.tests.back().outputs;
    const std::vector<float> fixed = {-0.25f, 0, 0.25f, 0.5f, 0.75f, 1};
    for (const char* file : {"snap_iter_5", "snap_iter_10", "snap_best", "snap_ema"}) {
      std::vector<float> kept;
      for (const LayerWeights& layer : ReadWeights(folder_ / (file + (".caffemodel" + end)))) {
        if (layer.name == "fixed") kept = layer.blobs.at(0).data;
      }
      EXPECT_EQ(kept, fixed) << file;
    }
    const std::string last = ReadFile(folder_ / ("snap_iter_10.caffemodel" + end));

    std::filesystem::remove(weights);
    SolverOptions resumed;
    resumed.snapshot = folder_ / ("snap_iter_5.solverstate" + end);
    const auto solver = Make(SolverText(settings, 10), resumed);
    solver->Train();
    EXPECT_FALSE(WarnsOf("fixed"));
    EXPECT_EQ(WeightsOf(solver->test_net(0).ToProto(), "fixed"), fixed);
    ASSERT_EQ(recorder_.tests.back().outputs.size(), without_a_break.size());
    for (size_t i = 0; i < without_a_break.size(); ++i) {
      EXPECT_EQ(recorder_.tests.back().outputs[i].value, without_a_break[i].value) << without_a_break[i].name;
    }
    EXPECT_TRUE(format == "HDF5" || ReadFile(folder_ / "snap_iter_10.caffemodel") == last);
  }
}

// Two test nets have the layer, and the file holds it once.
TEST_F(TestNetParameters, OfSeveralTestNetsAreKeptOnce) {
  AddFixed();
  SolverOptions options;
  options.weights = {WriteFixed("weights.caffemodel")};
  const std::string settings =
      "test_state {} test_state { stage: \"b\" } test_iter: 5 test_iter: 3 test_interval: 5 snapshot: 5";
  Train(settings, 5, options);
  int kept = 0;
  for (const LayerWeights& layer : ReadWeights(folder_ / "snap_iter_5.caffemodel")) kept += layer.name == "fixed";
  EXPECT_EQ(kept, 1);
  SolverOptions resumed;
  resumed.snapshot = folder_ / "snap_iter_5.solverstate";
  const auto solver = Make(SolverText(settings, 6), resumed);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(WeightsOf(solver->test_net(i).ToProto(), "fixed").at(5), 1) << i;
}

TEST_F(TestNetParameters, ThatNobodyGaveAreWarnedOfAlsoWhereTrainingWouldLeaveThem) {
  AddFixed();
  Train("test_interval: 5 test_iter: 5", 5);
  EXPECT_TRUE(WarnsOf("fixed"));
  for (const LayerWeights& layer : ReadWeights(folder_ / "snap_iter_5.caffemodel")) EXPECT_NE(layer.name, "fixed");
  SolverOptions resumed;
  resumed.snapshot = folder_ / "snap_iter_5.solverstate";
  Train("test_interval: 5 test_iter: 5", 6, resumed);
  EXPECT_TRUE(WarnsOf("fixed"));
  AddFixed("weight_filler { type: \"constant\" value: 0.5 }");
  Train("test_interval: 5 test_iter: 5", 5);
  EXPECT_FALSE(WarnsOf("fixed"));
}

TEST_F(TestNetParameters, WorkersOfTournamentsHaveNotThoseOfFiles) {
  AddFixed();
  SolverOptions options;
  options.role = SolverOptions::Role::kCoordinator;
  const auto make = [&](const std::string& mode) {
    Make(SolverText("test_interval: 5 test_iter: 5 distributed { mode: " + mode + " }", 5), options);
  };
  EXPECT_NO_THROW(make("TOURNAMENT"));
  options.weights = {WriteFixed("weights.caffemodel")};
  EXPECT_NO_THROW(make("AVERAGE"));
  const std::string error = ThrownBy<UserError>([&] { make("TOURNAMENT"); });
  EXPECT_NE(error.find("those of layer \"fixed\", which a weights file gave the test net alone"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace crema
