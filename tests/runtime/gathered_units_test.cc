// Layers that run together with what makes their bottoms: ReLUs above max pooling and inside joins.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/compiler.h"
#include "crema/net.h"
#include "device/device.h"
#include "near.h"
#include "ops/arrays/bfloat16.h"

namespace crema {
namespace {

std::string L(const std::string& type, const std::string& name, const std::string& bottom, const std::string& top,
              const std::string& more = "") {
  return "layer { type: '" + type + "' name: '" + name + "' bottom: '" + bottom + "' top: '" + top + "' " + more +
         " }\n";
}
std::string Conv(const std::string& name, const std::string& bottom, int outputs) {
  return L(
      "Convolution", name, bottom, name,
      "convolution_param { num_output: " + std::to_string(outputs) +
          " kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } bias_filler { type: 'uniform' min: -1 max: 1 } }");
}

// `relus`: the parameters of the ReLUs.
std::string NetText(const std::string& type, const std::string& relus) {
  return "layer { type: 'Input' name: 'in' top: 'data' top: 'label' "
         "input_param { shape { dim: 5 dim: 3 dim: 17 dim: 13 } shape { dim: 5 } } }\n" +
         Conv("a", "data", 12) + L(type, "ra", "a", "a", relus) +
         L("Pooling", "p", "a", "p", "pooling_param { kernel_size: 3 stride: 2 pad: 1 }") + Conv("b", "p", 7) +
         L(type, "rb", "b", "b", relus) + Conv("c", "p", 16) + L(type, "rc", "c", "c", relus) +
         "layer { type: 'Concat' name: 'j' bottom: 'b' bottom: 'c' bottom: 'p' top: 'j0' }\n"
         "layer { type: 'Concat' name: 'k' bottom: 'd' bottom: 'e' top: 'k' }\n"
         "layer { type: 'InnerProduct' name: 'ip' bottom: 'k' top: 'ip' "
         "inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }\n"
         "layer { type: 'SoftmaxWithLoss' name: 'loss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";
}

// Join "j" has a bottom that is no ReLU's; join "k" has ReLUs only.
std::string Text(const std::string& type, const std::string& relus) {
  std::string text = NetText(type, relus);
  const size_t at = text.find("layer { type: 'Concat' name: 'k'");
  return text.insert(
      at, Conv("d", "j0", 9) + L(type, "rd", "d", "d", relus) + Conv("e", "j0", 20) + L(type, "re", "e", "e", relus));
}

std::vector<std::string> Groups(const std::string& text, bool trains) {
  NetOptions options{.phase = trains ? TRAIN : TEST, .backward = trains};
  options.context.device = &CpuDevice();
  const auto net = Compile(ParseNet(text, "net.prototxt"), options);
  std::vector<std::string> names;
  for (const Node& group : net->graph.fused) names.push_back(group.name());
  return names;
}

std::vector<std::vector<float>> Gradients(const std::string& text, NetOptions options) {
  options.context.seed = 4;
  Net net(ParseNet(text, "net.prototxt"), options);
  const Tensor data = net.blob("data"), label = net.blob("label");
  for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i));
  for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 4);
  std::vector<std::vector<float>> all = {{net.Forward()}};
  net.Backward();
  for (const Parameter& p : std::as_const(net).parameters()) {
    all.emplace_back(p.shape.count());
    p.CopyGradTo(all.back().data());
  }
  return all;
}

void ExpectNear(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t p = 0; p < a.size(); ++p) ExpectNearInNorm(b[p], a[p], tolerance, "parameter " + std::to_string(p));
}

TEST(GatheredUnits, AreWhatCanWaitForARelu) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(Groups(Text("ReLU", ""), true), (Names{"ra+p", "rd+re+k", "b+rb", "c+rc"}));
  EXPECT_EQ(Groups(Text("ReLU6", ""), true), (Names{"ra+p", "b+rb", "c+rc", "d+rd", "e+re"}));
  const std::string slope = "relu_param { negative_slope: ";
  EXPECT_EQ(Groups(Text("ReLU", slope + "0.1 }"), true), (Names{"ra+p", "b+rb", "c+rc", "d+rd", "e+re"}));
  EXPECT_EQ(Groups(Text("ReLU", slope + "-0.1 }"), true), Names{});
  // Without a backward pass a convolution does it for nothing.
  EXPECT_EQ(Groups(Text("ReLU", ""), false), (Names{"a+ra", "b+rb", "c+rc", "d+rd", "e+re"}));
}

TEST(GatheredUnits, ComputeWhatTheirMembersDo) {
  for (const std::string& text :
       {Text("ReLU", ""), Text("ReLU6", ""), Text("ReLU", "relu_param { negative_slope: 0.1 }")}) {
    const auto one_by_one = Gradients(text, {.skip_passes = {"fuse_layers"}});
    ExpectNear(Gradients(text, {}), one_by_one, 1e-5);
    ExpectNear(Gradients(text, {.skip_passes = {"choose_layouts"}}), one_by_one, 1e-5);
    if (!ComputesBFloat16(CpuDevice())) continue;
    const Precision bf16 = Precision::kBF16;
    // Both round; a ReLU's input near 0 may come out on either side.
    ExpectNear(Gradients(text, {.precision = bf16}),
               Gradients(text, {.precision = bf16, .skip_passes = {"fuse_layers"}}), 0.03);
  }
}

}  // namespace
}  // namespace crema
