// Where the parameters of test nets come from.
#include <gtest/gtest.h>

#include <string>

#include "graph/program.h"
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

}  // namespace
}  // namespace crema
