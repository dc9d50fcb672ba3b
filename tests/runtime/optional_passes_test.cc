// What the compiler's optional passes make of a net computes what the net says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/compiler.h"
#include "crema/net.h"
#include "device/device.h"
#include "graph/program.h"
#include "near.h"
#include "ops/arrays/bfloat16.h"

namespace crema {
namespace {

std::string Layer(const std::string& type, const std::string& name, const std::string& bottoms, const std::string& top,
                  const std::string& more = "") {
  std::string text = "layer { type: \"" + type + "\" name: \"" + name + "\"";
  for (size_t at = 0; at < bottoms.size();) {
    const size_t end = std::min(bottoms.find(' ', at), bottoms.size());
    text += " bottom: \"" + bottoms.substr(at, end - at) + "\"";
    at = end + 1;
  }
  return text + " top: \"" + top + "\" " + more + " }\n";
}

std::string Convolution(const std::string& name, const std::string& bottom, int outputs, const std::string& more) {
  return Layer("Convolution", name, bottom, name,
               "convolution_param { num_output: " + std::to_string(outputs) + " weight_filler { type: \"xavier\" } " +
                   more + " }");
}

std::string NormalisedInPlace(const std::string& name) {
  return Layer("BatchNorm", name + "_bn", name, name) +
         Layer("Scale", name + "_scale", name, name,
               "scale_param { filler { type: \"uniform\" min: 0.5 max: 1.5 } bias_term: true "
               "bias_filler { type: \"uniform\" min: -0.3 max: 0.3 } }");
}

// As NVIDIA's fork does both.
std::string ScaledByItself(const std::string& name) {
  return Layer("BatchNorm", name + "_bn", name, name,
               "batch_norm_param { scale_filler { type: \"uniform\" min: 0.5 max: 1.5 } "
               "bias_filler { type: \"uniform\" min: -0.3 max: 0.3 } }");
}

std::string Bn(const std::string& name, const std::string& param) {
  return Layer("BN", name + "_bn", name, name, "bn_param { " + param + " }");
}

// Residual blocks with and without a projection, a branch that is read three times, channels that fill no vector,
// layers that stay plain between those that do not, and every chain that is fused.
std::string ResidualNet() {
  return "name: \"residual\"\n"
         "layer { type: \"Input\" name: \"in\" top: \"data\" top: \"label\" "
         "input_param { shape { dim: 6 dim: 3 dim: 13 dim: 11 } shape { dim: 6 } } }\n" +
         Convolution("c1", "data", 20, "kernel_size: 3 pad: 1") + Layer("ReLU", "r1", "c1", "c1") +
         Layer("Pooling", "p1", "c1", "p1", "pooling_param { kernel_size: 3 stride: 2 }") +
         Convolution("a1", "p1", 16, "kernel_size: 3 pad: 1 bias_term: false") + NormalisedInPlace("a1") +
         Layer("ReLU", "a1r", "a1", "a1") + Convolution("a2", "a1", 24, "kernel_size: 1") + NormalisedInPlace("a2") +
         Convolution("s", "p1", 24, "kernel_size: 1 bias_term: false") + NormalisedInPlace("s") +
         Layer("Eltwise", "sum", "s a2", "sum") + Layer("ReLU", "sumr", "sum", "sum") +
         Convolution("b1", "sum", 24, "kernel_size: 3 pad: 1") + Layer("BatchNorm", "b1_bn", "b1", "b1") +
         Layer("ReLU", "b1r", "b1", "b1") + Convolution("b2", "b1", 24, "kernel_size: 3 pad: 1 group: 4") +
         NormalisedInPlace("b2") + Layer("Eltwise", "sum2", "b2 sum", "sum2") +
         Convolution("d1", "sum2", 24, "kernel_size: 1") + Bn("d1", "momentum: 0.8") +
         Layer("ReLU", "d1r", "d1", "d1") + Convolution("d2", "d1", 24, "kernel_size: 1 bias_term: false") +
         Bn("d2", "bn_mode: INFERENCE") + Layer("Eltwise", "sum3", "d2 sum2", "sum3") +
         Convolution("e1", "sum3", 24, "kernel_size: 1 bias_term: false") + ScaledByItself("e1") +
         Layer("Eltwise", "sum4", "e1 sum3", "sum4") + Layer("ReLU", "sum4r", "sum4", "sum4") +
         Convolution("e2", "sum4", 24, "kernel_size: 1") + ScaledByItself("e2") + Layer("ReLU", "e2r", "e2", "e2") +
         Convolution("e3", "e2", 24, "kernel_size: 1") + ScaledByItself("e3") +
         Layer("Scale", "e3_scale", "e3", "e3", "scale_param { filler { value: 0.8 } }") +
         Layer("Concat", "cat", "e3 sum", "cat") + Layer("LRN", "lrn", "cat", "lrn", "lrn_param { alpha: 0.1 }") +
         Layer("Sigmoid", "sig", "lrn", "sig") +
         Layer("Pooling", "p2", "sig", "p2", "pooling_param { pool: AVE kernel_size: 2 stride: 2 }") +
         Layer("InnerProduct", "ip", "p2", "ip",
               "inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } }") +
         "layer { type: \"SoftmaxWithLoss\" name: \"loss\" bottom: \"ip\" bottom: \"label\" top: \"loss\" }\n";
}

struct PassOutcome {
  float loss = 0;
  std::vector<std::vector<float>> gradients;
  std::vector<float> statistics;  // of b2_bn and e2_bn, after the pass
};

PassOutcome RunNet(NetOptions options, int passes) {
  const bool trains = options.phase == TRAIN;
  options.backward = trains;
  options.context.seed = 7;
  Net net(ParseNet(ResidualNet(), "residual.prototxt"), options);
  for (Parameter& p : net.parameters()) {
    // As after some training: variances are positive, weights of the running sums not zero.
    if (p.layer.ends_with("_bn")) {
      for (int64_t i = 0; i < p.data.count(); ++i) p.data.f32()[i] = p.index == 0 ? 0.1f : p.index == 1 ? 0.8f : 2;
    }
  }
  PassOutcome outcome;
  for (int pass = 0; pass < passes; ++pass) {
    const Tensor data = net.blob("data"), label = net.blob("label");
    for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i + pass));
    for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 5);
    outcome.loss = net.Forward();
    if (trains) net.Backward();
  }
  for (const Parameter& p : std::as_const(net).parameters()) {
    if (p.grad.defined()) p.CopyGradTo(outcome.gradients.emplace_back(p.shape.count()).data());
    if (p.layer == "b2_bn" || p.layer == "e2_bn")
      outcome.statistics.insert(outcome.statistics.end(), p.data.f32(), p.data.f32() + p.data.count());
  }
  return outcome;
}

void ExpectNearby(const PassOutcome& a, const PassOutcome& b, float tolerance) {
  EXPECT_NEAR(a.loss, b.loss, tolerance * std::abs(b.loss));
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (size_t p = 0; p < a.gradients.size(); ++p) {
    // The gradient of a bias below batch normalisation is rounding only.
    ExpectClose(b.gradients[p], a.gradients[p], 10 * tolerance, "parameter " + std::to_string(p), 1e-3);
  }
  for (size_t i = 0; i < a.statistics.size(); ++i) {
    EXPECT_NEAR(a.statistics[i], b.statistics[i], tolerance * (1 + std::abs(b.statistics[i])));
  }
}

const std::vector<std::string> kAll = {"fuse_layers", "choose_layouts", "lay_out_weights", "split_batch"};

TEST(OptionalPasses, TrainingDoesNotDependOnThem) {
  const PassOutcome plain = RunNet({.skip_passes = kAll}, 2);
  EXPECT_GT(plain.loss, 0.1f);
  ExpectNearby(RunNet({}, 2), plain, 1e-5f);
  ExpectNearby(RunNet({.skip_passes = {"fuse_layers"}}, 2), plain, 1e-5f);
  ExpectNearby(RunNet({.skip_passes = {"choose_layouts"}}, 2), plain, 1e-5f);
  ExpectNearby(RunNet({.skip_passes = {"lay_out_weights"}}, 2), plain, 1e-5f);
}

TEST(OptionalPasses, TrainingInBFloat16DoesNotDependOnHowWeightsLie) {
  if (!ComputesBFloat16(CpuDevice())) GTEST_SKIP() << "this CPU does not compute in bf16";
  const NetOptions kept{.precision = Precision::kBF16};
  const NetOptions plain{.precision = Precision::kBF16, .skip_passes = {"lay_out_weights"}};
  ExpectNearby(RunNet(kept, 2), RunNet(plain, 2), 1e-5f);
}

TEST(OptionalPasses, TestingDoesNotDependOnThem) {
  const PassOutcome plain = RunNet({.phase = TEST, .skip_passes = kAll}, 2);
  EXPECT_GT(plain.loss, 0.1f);
  ExpectNearby(RunNet({.phase = TEST}, 2), plain, 1e-5f);
}

TEST(OptionalPasses, ChainsAreFused) {
  NetOptions options;
  options.context.device = &CpuDevice();
  const auto types = [&] {
    std::vector<std::string> list;
    const auto net = Compile(ParseNet(ResidualNet(), "residual.prototxt"), options);
    for (const Node& group : net->graph.fused) list.push_back(group.type_name());
    return list;
  };
  EXPECT_EQ(types(), (std::vector<std::string>{"ReLU+Pooling", "BatchNorm+Scale+ReLU", "BatchNorm+Scale+Eltwise+ReLU",
                                               "BatchNorm+Scale", "BatchNorm+ReLU", "BatchNorm+Scale+Eltwise",
                                               "BN+ReLU", "BN+Eltwise", "BatchNorm+Eltwise+ReLU", "BatchNorm+ReLU"}));
  options.phase = TEST;
  options.backward = false;
  EXPECT_EQ(types(), (std::vector<std::string>{
                         "Convolution+ReLU", "Convolution+BatchNorm+Scale+ReLU", "Convolution+BatchNorm+Scale",
                         "Convolution+BatchNorm+Scale+Eltwise+ReLU", "Convolution+BatchNorm+ReLU",
                         "Convolution+BatchNorm+Scale+Eltwise", "Convolution+BN+ReLU", "Convolution+BN+Eltwise",
                         "Convolution+BatchNorm+Eltwise+ReLU", "Convolution+BatchNorm+ReLU", "Convolution+BatchNorm"}));
}

TEST(OptionalPasses, ReordersAreFewAndShown) {
  NetOptions options;
  options.context.device = &CpuDevice();
  const auto net = Compile(ParseNet(ResidualNet(), "residual.prototxt"), options);
  std::vector<std::string> written;
  for (const auto* steps : {&net->program.forward, &net->program.backward}) {
    for (const Step& step : *steps) {
      if (step.kind == StepKind::kReorder) written.push_back(net->program.tensors[step.tops[0]].name);
    }
  }
  EXPECT_EQ(written, (std::vector<std::string>{"data (channels last)", "p2 (plain)", "grad p2 (channels last)"}));
}

// Converted copies of weights follow the weights.
TEST(OptionalPasses, ATestNetSeesWhatTrainingChanged) {
  NetOptions train;
  train.context.seed = 7;
  const NetFile file = ParseNet(ResidualNet(), "residual.prototxt");
  Net net(file, train);
  Net tested(file, {.phase = TEST, .backward = false, .share_with = &net});
  const auto fill = [](Net& n) {
    for (int64_t i = 0; i < n.blob("data").count(); ++i)
      n.blob("data").f32()[i] = std::sin(0.37f * static_cast<float>(i));
    for (int64_t i = 0; i < 6; ++i) n.blob("label").f32()[i] = static_cast<float>(i % 5);
  };
  fill(net);
  net.Forward();
  fill(tested);
  const float before = tested.Forward();
  EXPECT_EQ(tested.Forward(), before);
  for (float& value : net.parameter_block()) value *= 0.9f;
  EXPECT_NE(tested.Forward(), before);
}

// Images in 8 bits of mantissa: losses agree to about 2^-8, gradients point the same way.
TEST(OptionalPasses, BFloat16IsCloseToF32) {
  if (!ComputesBFloat16(CpuDevice())) GTEST_SKIP() << "this CPU does not compute in bf16";
  for (Phase phase : {TRAIN, TEST}) {
    const PassOutcome exact = RunNet({.phase = phase}, 2);
    const PassOutcome rounded = RunNet({.phase = phase, .precision = Precision::kBF16}, 2);
    EXPECT_NEAR(rounded.loss, exact.loss, 0.02f * exact.loss);
    EXPECT_NE(rounded.loss, exact.loss);
    ASSERT_EQ(rounded.gradients.size(), exact.gradients.size());
    double dot = 0, exact_square = 0, rounded_square = 0;
    for (size_t p = 0; p < exact.gradients.size(); ++p) {
      for (size_t i = 0; i < exact.gradients[p].size(); ++i) {
        dot += double{exact.gradients[p][i]} * rounded.gradients[p][i];
        exact_square += double{exact.gradients[p][i]} * exact.gradients[p][i];
        rounded_square += double{rounded.gradients[p][i]} * rounded.gradients[p][i];
      }
    }
    if (phase == TRAIN) {
      EXPECT_GT(dot / std::sqrt(exact_square * rounded_square), 0.99);
    }
    for (size_t i = 0; i < exact.statistics.size(); ++i) {
      EXPECT_NEAR(rounded.statistics[i], exact.statistics[i], 0.02f * (1 + std::abs(exact.statistics[i])));
    }
  }
}

TEST(OptionalPasses, OthersCannotBeSkipped) {
  try {
    RunNet({.skip_passes = {"schedule"}}, 1);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("fuse_layers, choose_layouts, lay_out_weights, split_batch"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace crema
