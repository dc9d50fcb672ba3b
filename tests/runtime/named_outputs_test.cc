// NetOptions::outputs: blobs that are kept beside what reads them, without what they do not need.
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

// Chains that run as one, in place and not, a shortcut, views, and two ends.
constexpr char kNamedNet[] = R"(
layer { type: "Input" name: "in" top: "data" top: "label"
        input_param { shape { dim: 4 dim: 3 dim: 9 dim: 8 } shape { dim: 4 } } }
layer { type: "Convolution" name: "c1" bottom: "data" top: "c1"
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { type: "BatchNorm" name: "n1" bottom: "c1" top: "n1" batch_norm_param { eps: 0.5 } }
layer { type: "Scale" name: "s1" bottom: "n1" top: "n1" scale_param { bias_term: true } }
layer { type: "ReLU" name: "r1" bottom: "n1" top: "n1" }
layer { type: "Convolution" name: "c2" bottom: "n1" top: "c2"
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { type: "Eltwise" name: "e" bottom: "c2" bottom: "n1" top: "e" }
layer { type: "ReLU" name: "r2" bottom: "e" top: "r2" }
layer { type: "Pooling" name: "p" bottom: "r2" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
layer { type: "Flatten" name: "f" bottom: "p" top: "f" }
layer { type: "InnerProduct" name: "fc" bottom: "f" top: "fc"
        inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
layer { type: "TanH" name: "t" bottom: "fc" top: "fc" }
layer { type: "InnerProduct" name: "ip" bottom: "fc" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { type: "InnerProduct" name: "side" bottom: "fc" top: "side"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { type: "SoftmaxWithLoss" name: "loss" bottom: "ip" bottom: "label" top: "loss" })";

const std::vector<std::string> kBlobs = {"data", "c1", "n1", "c2", "e", "r2", "p", "f", "fc", "ip", "side"};

NetOptions NamedOptions(std::vector<std::string> outputs, Device* device = nullptr) {
  NetOptions options{.phase = TEST, .outputs = std::move(outputs), .backward = false};
  options.context.device = device;
  options.context.seed = 5;
  return options;
}

void PassBoth(Net& net) {
  for (const NetInput& input : net.inputs()) {
    for (int64_t i = 0; i < input.value.count(); ++i) {
      input.value.f32()[i] =
          input.name == "label" ? static_cast<float>(i % 5) : std::sin(0.37f * static_cast<float>(i));
    }
  }
  net.Forward();
}

std::vector<std::string> Layers(const Net& net) {
  std::vector<std::string> names;
  for (const Node& node : net.compiled().graph.nodes) names.push_back(node.name());
  return names;
}

void ExpectSame(const Net& net, const Net& all, const std::vector<std::string>& blobs) {
  for (const std::string& name : blobs) {
    const Tensor value = net.blob(name), wanted = all.blob(name);
    ASSERT_EQ(value.shape(), wanted.shape()) << name;
    for (int64_t i = 0; i < value.count(); ++i) {
      ASSERT_NEAR(value.f32()[i], wanted.f32()[i], 2e-5 * std::max(1.f, std::fabs(wanted.f32()[i]))) << name << i;
    }
  }
}

TEST(NamedOutputs, HoldWhatANetThatKeepsAllHolds) {
  const NetFile file = ParseNet(kNamedNet, "net.prototxt");
  NetOptions keep = NamedOptions({});
  keep.keep_all = true;
  Net all(file, keep);
  PassBoth(all);
  std::vector<std::vector<std::string>> choices = {kBlobs, {"n1", "r2", "side"}, {"c2", "f"}};
  for (const std::string& name : kBlobs) choices.push_back({name});
  for (const auto& names : choices) {
    Net net(file, NamedOptions(names));
    PassBoth(net);
    ASSERT_EQ(net.outputs().size(), names.size());
    ExpectSame(net, all, names);
  }
}

TEST(NamedOutputs, LeaveOutWhatTheyDoNotNeed) {
  const NetFile file = ParseNet(kNamedNet, "net.prototxt");
  EXPECT_EQ(Layers(Net(file, NamedOptions({"c2"}))), (std::vector<std::string>{"in", "c1", "n1", "s1", "r1", "c2"}));
  const Net side(file, NamedOptions({"side"}));
  EXPECT_EQ(Layers(side).back(), "side");
  EXPECT_EQ(Layers(side).size(), 13u);  // without ip and the loss
  NetOptions keep = NamedOptions({});
  keep.keep_all = true;
  const Net whole(file, NamedOptions({})), all(file, keep), r2(file, NamedOptions({"r2"}));
  EXPECT_LT(r2.compiled().program.arena_bytes, all.compiled().program.arena_bytes);
  EXPECT_LT(r2.parameters().size(), whole.parameters().size());
  EXPECT_FALSE(r2.compiled().graph.fused.empty());  // the others still run as one
}

TEST(NamedOutputs, KeepWhoOwnsParametersAndCountsNames) {
  const auto ip = [](const std::string& name, const std::string& bottom, const std::string& top,
                     const std::string& more) {
    return "layer { type: \"InnerProduct\" name: \"" + name + "\" bottom: \"" + bottom + "\" top: \"" + top +
           "\" inner_product_param { num_output: 4 bias_term: false weight_filler { type: \"xavier\" } } " + more +
           "}\n";
  };
  const std::string input =
      "layer { type: \"Input\" name: \"in\" top: \"x\" input_param { shape { dim: 2 dim: 4 } } }\n";
  const std::string shared = "param { name: \"w\" }";
  const NetFile siamese = ParseNet(input + ip("a", "x", "a", shared) + ip("b", "x", "b", shared), "net.prototxt");
  EXPECT_EQ(Layers(Net(siamese, NamedOptions({"b"}))), (std::vector<std::string>{"in", "a", "b"}));
  EXPECT_EQ(Layers(Net(siamese, NamedOptions({"a"}))), (std::vector<std::string>{"in", "a"}));
  // Weights of the second layer of a name are the second ones of the file.
  const NetFile twice = ParseNet(input + ip("a", "x", "first", "") + ip("a", "x", "second", ""), "net.prototxt");
  EXPECT_EQ(Layers(Net(twice, NamedOptions({"second"}))), (std::vector<std::string>{"in", "a", "a"}));
  EXPECT_EQ(Layers(Net(twice, NamedOptions({"first"}))), (std::vector<std::string>{"in", "a"}));
}

TEST(NamedOutputs, BesideALossChangeNoGradient) {
  const NetFile file = ParseNet(kNamedNet, "net.prototxt");
  NetOptions named = NamedOptions({"n1", "r2", "loss"}), plain = NamedOptions({});
  for (NetOptions* options : {&named, &plain}) {
    options->phase = TRAIN;
    options->backward = true;
  }
  Net net(file, named), whole(file, plain);
  PassBoth(net);
  PassBoth(whole);
  net.Backward();
  whole.Backward();
  for (size_t i = 0; i < net.parameters().size(); ++i) {
    const Parameter& own = net.parameters()[i];
    const Parameter& other = whole.parameters()[i];
    ASSERT_EQ(own.name(), other.name());
    if (!own.trained) continue;
    std::vector<float> values(static_cast<size_t>(own.shape.count())), wanted(values.size());
    own.CopyGradTo(values.data());
    other.CopyGradTo(wanted.data());
    for (size_t k = 0; k < values.size(); ++k) ASSERT_NEAR(values[k], wanted[k], 1e-4) << own.name();
  }
}

TEST(NamedOutputs, ThatAreNotThereAreAnError) {
  try {
    Net(ParseNet(kNamedNet, "net.prototxt"), NamedOptions({"c1", "sides", "nothing"}));
    FAIL();
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("net.prototxt: error: the net has no blob \"sides\"; did you mean"), std::string::npos) << text;
    EXPECT_NE(text.find("the net has no blob \"nothing\"; it has \"data\", \"label\", \"c1\""), std::string::npos);
  }
}

TEST(NamedOutputs, OfANetOnAGpuLieInTheHostsMemory) {
  Device* gpu = nullptr;
  try {
    gpu = &OpenGpu(0);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  const NetFile file = ParseNet(kNamedNet, "net.prototxt");
  NetOptions keep = NamedOptions({});
  keep.keep_all = true;
  Net all(file, keep);
  PassBoth(all);
  for (const auto& names : std::vector<std::vector<std::string>>{kBlobs, {"n1"}, {"c2", "f"}, {"data"}}) {
    Net net(file, NamedOptions(names, gpu));
    std::vector<Tensor> before;
    for (const std::string& name : names) before.push_back(net.blob(name));
    for (int pass = 0; pass < 3; ++pass) PassBoth(net);
    ExpectSame(net, all, names);
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(net.blob(names[i]).raw(), before[i].raw());
  }
}

}  // namespace
}  // namespace crema
