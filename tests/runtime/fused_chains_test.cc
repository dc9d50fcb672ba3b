// Layers that run as one compute what they compute one by one: losses, gradients of every parameter and of the input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/compiler.h"
#include "crema/net.h"
#include "device/device.h"
#include "near.h"
#include "ops/arrays/bfloat16.h"
#include "runtime/two_passes.h"

namespace crema {
namespace {

struct Case {
  const char* name;
  // Of layers "a", "b", ... between a convolution or an inner product and the loss, each of which reads the one before.
  std::vector<const char*> first, second;
  // What is fused, in training and without a backward pass.
  std::vector<std::string> trained, tested;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

constexpr char kRelu[] = "type: 'ReLU'", kLeaky[] = "type: 'ReLU' relu_param { negative_slope: 0.1 }",
               kNegative[] = "type: 'ReLU' relu_param { negative_slope: -0.3 }", kRelu6[] = "type: 'ReLU6'",
               kSigmoid[] = "type: 'Sigmoid'", kTanh[] = "type: 'TanH'",
               kSwish[] = "type: 'Swish' swish_param { beta: 1.5 }", kElu[] = "type: 'ELU' elu_param { alpha: 0.5 }",
               kHardSwish[] = "type: 'HardSwish'", kMish[] = "type: 'Mish'",
               kLine[] = "type: 'Power' power_param { scale: -0.7 shift: 0.3 }",
               kCube[] = "type: 'Power' power_param { power: 3 scale: 0.5 }",
               kClip[] = "type: 'Clip' clip_param { min: -1.5 max: 2 }",
               kDropout[] = "type: 'Dropout' dropout_param { dropout_ratio: 0.3 }";

const Case kCases[] = {
    {"relu_dropout",
     {kRelu, kDropout},
     {kRelu, kDropout},
     {"Convolution+ReLU", "InnerProduct+ReLU+Dropout"},
     {"Convolution+ReLU", "InnerProduct+ReLU"}},
    {"leaky",
     {kLeaky},
     {kLeaky, kDropout},
     {"Convolution+ReLU", "InnerProduct+ReLU+Dropout"},
     {"Convolution+ReLU", "InnerProduct+ReLU"}},
    {"negative_slope", {kNegative}, {kNegative}, {}, {"Convolution+ReLU", "InnerProduct+ReLU"}},
    {"relu6",
     {kRelu6},
     {kRelu6},
     {"Convolution+ReLU6", "InnerProduct+ReLU6"},
     {"Convolution+ReLU6", "InnerProduct+ReLU6"}},
    {"sigmoid",
     {kSigmoid},
     {kSigmoid},
     {"Convolution+Sigmoid", "InnerProduct+Sigmoid"},
     {"Convolution+Sigmoid", "InnerProduct+Sigmoid"}},
    {"tanh", {kTanh}, {kTanh}, {"Convolution+TanH", "InnerProduct+TanH"}, {"Convolution+TanH", "InnerProduct+TanH"}},
    {"swish", {kSwish}, {kSwish}, {}, {"Convolution+Swish", "InnerProduct+Swish"}},
    {"hard_swish", {kHardSwish}, {kHardSwish}, {}, {"Convolution+HardSwish", "InnerProduct+HardSwish"}},
    {"mish", {kMish}, {kMish}, {}, {"Convolution+Mish", "InnerProduct+Mish"}},
    {"elu",
     {kElu},
     {kRelu, kElu},
     {"Convolution+ELU", "InnerProduct+ReLU+ELU"},
     {"Convolution+ELU", "InnerProduct+ReLU+ELU"}},
    {"line_clip",
     {kLine, kClip},
     {kLine, kClip},
     {"Power+Clip", "InnerProduct+Power"},
     {"Power+Clip", "InnerProduct+Power+Clip"}},
    {"cube", {kCube}, {kTanh, kCube}, {"InnerProduct+TanH"}, {"InnerProduct+TanH"}},
    {"dropout_first",
     {kDropout, kRelu},
     {kDropout, kTanh},
     {
         "Dropout+ReLU",
         "InnerProduct+Dropout+TanH",
     },
     {}},
    {"long",
     {kTanh, kDropout, kSwish, kLeaky, kDropout},
     {kSwish, kDropout, kSigmoid, kDropout, kRelu},
     {"Convolution+TanH", "Dropout+Swish+ReLU+Dropout", "Swish+Dropout+Sigmoid+Dropout+ReLU"},
     {"Convolution+TanH", "Swish+ReLU", "InnerProduct+Swish"}},
};

std::string Chain(const std::vector<const char*>& layers, const std::string& prefix, std::string bottom,
                  std::string* top) {
  std::string text;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = prefix + std::to_string(i);
    text += "layer { name: '" + name + "' bottom: '" + bottom + "' top: '" + name + "' " + layers[i] + " }\n";
    bottom = name;
  }
  *top = bottom;
  return text;
}

std::string NetText(const Case& test) {
  std::string top;
  std::string text =
      "force_backward: true\n"
      "layer { type: 'Input' name: 'in' top: 'data' top: 'label' "
      "input_param { shape { dim: 5 dim: 3 dim: 13 dim: 11 } shape { dim: 5 } } }\n"
      "layer { type: 'Convolution' name: 'c' bottom: 'data' top: 'c' convolution_param { num_output: 24 kernel_size: 3 "
      "weight_filler { type: 'gaussian' std: 0.5 } bias_filler { type: 'uniform' min: -1 max: 1 } } }\n";
  text += Chain(test.first, "x", "c", &top);
  text += "layer { type: 'Convolution' name: 'd' bottom: '" + top +
          "' top: 'd' convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: 'xavier' } } }\n"
          "layer { type: 'InnerProduct' name: 'ip' bottom: 'd' top: 'ip' inner_product_param { num_output: 150 "
          "weight_filler { type: 'xavier' } bias_filler { type: 'uniform' min: -1 max: 1 } } }\n";
  text += Chain(test.second, "y", "ip", &top);
  text += "layer { type: 'InnerProduct' name: 'ip2' bottom: '" + top +
          "' top: 'ip2' inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }\n"
          "layer { type: 'SoftmaxWithLoss' name: 'loss' bottom: 'ip2' bottom: 'label' top: 'loss' }\n";
  return text;
}

Outcome RunNet(const Case& test, const NetOptions& options) { return RunTwoPasses(NetText(test), 11, options); }

void ExpectNear(const Outcome& a, const Outcome& b, float tolerance) {
  EXPECT_NEAR(a.loss, b.loss, tolerance * std::abs(b.loss));
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (size_t p = 0; p < a.gradients.size(); ++p) {
    ExpectNearInNorm(b.gradients[p], a.gradients[p], 10 * tolerance, "parameter " + std::to_string(p));
  }
}

class FusedChains : public testing::TestWithParam<Case> {};

TEST_P(FusedChains, AreTheseGroups) {
  for (Phase phase : {TRAIN, TEST}) {
    NetOptions options{.phase = phase, .backward = phase == TRAIN};
    options.context.device = &CpuDevice();
    const auto net = Compile(ParseNet(NetText(GetParam()), "chains.prototxt"), options);
    std::vector<std::string> types;
    for (const Node& group : net->graph.fused) types.push_back(group.type_name());
    EXPECT_EQ(types, phase == TRAIN ? GetParam().trained : GetParam().tested);
  }
}

TEST_P(FusedChains, ComputeWhatTheirMembersDo) {
  const std::vector<std::string> none, layouts = {"choose_layouts"};
  for (const auto& skipped : {none, layouts}) {
    std::vector<std::string> also = skipped;
    also.push_back("fuse_layers");
    for (Phase phase : {TRAIN, TEST}) {
      const Outcome one_by_one = RunNet(GetParam(), {.phase = phase, .skip_passes = also});
      EXPECT_GT(one_by_one.loss, 0.1f);
      ExpectNear(RunNet(GetParam(), {.phase = phase, .skip_passes = skipped}), one_by_one, 1e-5f);
    }
  }
}

// Rounding between the members is what fusing saves.
TEST_P(FusedChains, ComputeWhatTheirMembersDoInBFloat16) {
  if (!ComputesBFloat16(CpuDevice())) GTEST_SKIP() << "this CPU does not compute in bf16";
  const Outcome fused = RunNet(GetParam(), {.precision = Precision::kBF16});
  const Outcome one_by_one = RunNet(GetParam(), {.precision = Precision::kBF16, .skip_passes = {"fuse_layers"}});
  const Outcome exact = RunNet(GetParam(), {});
  EXPECT_NE(fused.loss, exact.loss);
  ExpectNear(fused, one_by_one, 0.01f);
  ExpectNear(fused, exact, 0.01f);
}

INSTANTIATE_TEST_SUITE_P(Chains, FusedChains, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace crema
