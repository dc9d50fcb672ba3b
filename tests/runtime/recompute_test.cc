// Layers that run again in the backward pass, for a net that is kept within a memory limit.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_size.h"
#include "crema/net.h"
#include "graph/program.h"
#include "report/dump.h"
#include "report/step_info.h"

namespace crema {
namespace {

std::string LayerText(const std::string& type, const std::string& name, const std::string& bottom,
                      const std::string& top, const std::string& more = "") {
  return "layer { type: \"" + type + "\" name: \"" + name + "\" bottom: \"" + bottom + "\" top: \"" + top + "\" " +
         more + " }\n";
}

std::string Convolution(const std::string& name, const std::string& bottom) {
  return LayerText("Convolution", name, bottom, name,
                   "convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: \"xavier\" } }");
}

// What may not simply run twice: running statistics, random masks and mixes, the state of an LSTM; and views, forks,
// chains.
std::string DeepNet() {
  std::string text =
      "name: \"deep\"\n"
      "layer { name: \"in\" type: \"Input\" top: \"data\" top: \"label\" top: \"cont\" input_param { "
      "shape { dim: 6 dim: 3 dim: 16 dim: 16 } shape { dim: 6 } shape { dim: 16 dim: 6 } } }\n";
  text +=
      "layer { type: \"MixUp\" name: \"mix\" bottom: \"data\" bottom: \"label\" top: \"mixed\" top: \"target\" "
      "mixup_param { num_classes: 5 cutmix_alpha: 1 } }\n";
  std::string bottom = "mixed";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i), conv = "conv" + n, sum = "sum" + n;
    text += Convolution(conv, bottom) + LayerText("BatchNorm", "norm" + n, conv, conv) +
            LayerText("ReLU", "relu" + n, conv, conv) + LayerText("LRN", "lrn" + n, conv, "lrn" + n) +
            LayerText("Dropout", "drop" + n, "lrn" + n, "drop" + n) +
            LayerText("Sigmoid", "sigmoid" + n, "drop" + n, "sigmoid" + n);
    text += "layer { type: \"Eltwise\" name: \"" + sum + "\" bottom: \"" + conv + "\" bottom: \"sigmoid" + n +
            "\" top: \"" + sum + "\" }\n";
    bottom = sum;
  }
  text += LayerText("Pooling", "pool", bottom, "pool", "pooling_param { pool: STOCHASTIC kernel_size: 4 stride: 4 }") +
          LayerText("Reshape", "steps", "pool", "steps", "reshape_param { shape { dim: 16 dim: 6 dim: 16 } }") +
          "layer { type: \"LSTM\" name: \"lstm\" bottom: \"steps\" bottom: \"cont\" top: \"lstm\" recurrent_param { "
          "num_output: 12 weight_filler { type: \"xavier\" } } }\n" +
          LayerText("Reshape", "items", "lstm", "items", "reshape_param { shape { dim: 6 dim: -1 } }") +
          LayerText("InnerProduct", "ip", "items", "ip",
                    "inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } }");
  return text + "layer { type: \"SoftmaxWithLoss\" name: \"loss\" bottom: \"ip\" bottom: \"target\" top: \"loss\" }\n";
}

std::vector<float> GradientsOf(Net& net) {
  std::vector<float> all;
  for (int pass = 0; pass < 3; ++pass) {
    const Tensor data = net.blob("data"), label = net.blob("label"), cont = net.blob("cont");
    for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i + pass));
    for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 5);
    for (int64_t i = 0; i < cont.count(); ++i) cont.f32()[i] = i % 7 != 0;
    all.push_back(net.Forward());
    net.Backward();
  }
  for (const Parameter& p : std::as_const(net).parameters()) {
    for (const Tensor& t : {p.data, p.grad}) {
      if (t.defined()) all.insert(all.end(), t.f32(), t.f32() + t.count());
    }
  }
  return all;
}

size_t BytesOf(const Net& net) {
  size_t bytes = net.compiled().program.arena_bytes;
  for (const Parameter& p : net.parameters()) bytes += p.data.bytes() * (p.trained ? 2 : 1);
  return bytes;
}

int RunAgain(const Net& net) {
  int count = 0;
  for (const Step& step : net.compiled().program.backward) count += step.kind == StepKind::kForward;
  return count;
}

TEST(Recompute, GivesTheSameBitsWithinEveryLimit) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    const NetFile file = ParseNet(DeepNet(), "deep.prototxt");
    NetOptions options{.precision = precision};
    Net whole(file, options);
    const std::vector<float> expected = GradientsOf(whole);
    const size_t bytes = BytesOf(whole);
    EXPECT_EQ(RunAgain(whole), 0);
    options.recompute = Recompute::kAuto;
    int fitted = 0, most = 0;
    for (const int percent : {100, 90, 75, 65, 55}) {
      options.memory_limit = bytes * percent / 100;
      try {
        Net net(file, options);
        EXPECT_LE(BytesOf(net), options.memory_limit);
        EXPECT_EQ(RunAgain(net) == 0, percent == 100);
        EXPECT_EQ(GradientsOf(net), expected) << percent << " %, " << RunAgain(net) << " run again";
        most = std::max(most, RunAgain(net));
        ++fitted;
      } catch (const UserError& error) {
        break;
      }
    }
    EXPECT_GE(fitted, 3);
    EXPECT_GE(most, 6);
  }
}

TEST(Recompute, IsToldAndLimitsThatCannotBeMetAreRefused) {
  const NetFile file = ParseNet(DeepNet(), "deep.prototxt");
  NetOptions options;
  Net whole(file, options);
  options.memory_limit = BytesOf(whole) * 8 / 10;
  const auto message = [&]() -> std::string {
    try {
      return Net(file, options).warnings().back().ToString();
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_NE(message().find("set recompute: AUTO, or lower batch_size"), std::string::npos) << message();
  options.recompute = Recompute::kAuto;
  EXPECT_EQ(message().find("note: recompute: "), 0u) << message();
  const Net net(file, options);
  const std::string plan = DumpPlan(net.compiled(), false);
  EXPECT_NE(plan.find("forward again"), std::string::npos) << plan;
  int again = 0;
  for (const StepInfo& step : DescribeSteps(net.compiled())) again += step.category == "again";
  EXPECT_EQ(again, RunAgain(net));
  options.memory_limit = 1000;
  EXPECT_NE(message().find("even where layers run again"), std::string::npos) << message();
  EXPECT_NE(message().find("memory_limit 1000 B"), std::string::npos) << message();
  // What it asks for is enough, and a byte less is not.
  const std::string takes = "the net takes ";
  const size_t enough = std::stoull(message().substr(message().find(takes) + takes.size()));
  options.memory_limit = enough;
  EXPECT_EQ(message().find("note: recompute: "), 0u) << message();
  options.memory_limit = enough - 1;
  EXPECT_NE(message().find("even where layers run again"), std::string::npos) << message();
  // What the solver keeps counts.
  options.memory_limit = BytesOf(whole);
  options.parameter_copies = 2;
  EXPECT_EQ(message().find("note: recompute: "), 0u) << message();
}

}  // namespace
}  // namespace crema
