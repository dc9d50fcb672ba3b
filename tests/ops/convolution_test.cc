#include "ops/convolution/convolution.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "comparison.h"
#include "convolution_case.h"
#include "convolution_runs.h"
#include "near.h"

namespace crema {
namespace {

const ConvolutionCase kCases[] = {
    {"lenet1", 2, 1, 20, 1, {28, 28}, {5, 5}, {1, 1}, {0, 0}, {1, 1}},
    {"lenet2", 3, 20, 50, 1, {12, 12}, {5, 5}, {1, 1}, {0, 0}, {1, 1}},
    {"cifar1", 2, 3, 32, 1, {32, 32}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},
    {"cifar3", 2, 32, 64, 1, {8, 8}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},
    {"3x3", 2, 16, 32, 1, {9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"1x1", 2, 32, 16, 1, {7, 7}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"1x1 many channels", 2, 129, 515, 1, {4, 3}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"1x1 stride 2", 2, 16, 32, 1, {8, 8}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {"1x1 strides few channels", 3, 3, 8, 1, {13, 4}, {1, 1}, {1, 2}, {0, 0}, {1, 1}},
    {"1x1 groups", 2, 8, 12, 4, {5, 5}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"alexnet1", 1, 3, 96, 1, {35, 35}, {11, 11}, {4, 4}, {0, 0}, {1, 1}},
    {"alexnet2", 1, 32, 64, 2, {9, 9}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},
    {"odd everything", 3, 5, 7, 1, {11, 6}, {4, 3}, {3, 2}, {2, 1}, {1, 1}},
    {"odd groups", 2, 6, 9, 3, {7, 8}, {3, 2}, {2, 1}, {1, 0}, {1, 1}},
    {"depthwise", 2, 16, 16, 16, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise odd", 2, 5, 5, 5, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {"depthwise multiplier", 2, 4, 8, 4, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"dilated", 2, 4, 6, 1, {13, 12}, {3, 3}, {1, 1}, {2, 2}, {2, 3}},
    {"dilated wide", 2, 40, 40, 1, {9, 60}, {3, 1}, {1, 1}, {1, 0}, {2, 1}},
    {"dilated stride groups", 1, 4, 6, 2, {15, 15}, {3, 3}, {2, 2}, {3, 1}, {3, 2}},
    {"kernel equals input", 2, 3, 4, 1, {6, 5}, {6, 5}, {1, 1}, {0, 0}, {1, 1}},
    {"pad beyond kernel", 1, 2, 3, 1, {4, 4}, {2, 2}, {1, 1}, {3, 3}, {1, 1}},
    {"last columns unused", 2, 3, 4, 1, {10, 10}, {3, 3}, {4, 4}, {0, 0}, {1, 1}},
    {"columns in the padding", 2, 16, 16, 1, {5, 3}, {3, 5}, {1, 4}, {0, 1}, {1, 1}},
    {"columns in the padding groups", 2, 12, 36, 12, {7, 3}, {5, 5}, {4, 4}, {2, 2}, {1, 1}},
    {"columns in the padding depthwise", 2, 17, 17, 17, {2, 1}, {5, 3}, {1, 4}, {2, 2}, {1, 1}},
    {"dilated beyond the image", 2, 16, 32, 1, {5, 5}, {3, 3}, {1, 1}, {6, 6}, {6, 6}},
    {"outputs of padding", 1, 1, 64, 1, {4, 2}, {1, 1}, {1, 1}, {6, 0}, {1, 1}},
    {"1x1 odd outputs", 2, 16, 21, 1, {6, 10}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"1x1 odd outputs stride 2", 2, 16, 21, 1, {12, 10}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {"one of everything", 1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"1-d", 3, 4, 6, 1, {17}, {5}, {2}, {2}, {1}},
    {"1-d dilated", 3, 16, 16, 1, {17}, {3}, {1}, {2}, {2}},
    {"3-d", 2, 3, 4, 1, {6, 7, 5}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}},
    {"3-d strided", 1, 16, 16, 1, {3, 3, 3}, {3, 3, 3}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {"3-d groups", 1, 4, 4, 2, {5, 5, 5}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}},
};

class Convolution : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(Convolution, EqualsReference) {
  for (const bool bias : {true, false}) {
    ConvolutionProblem problem = ProblemOf(GetParam(), bias);
    problem.source_gradient = problem.weights_gradient = true;
    problem.bias_gradient = bias;
    const Results expected = RunKernel(problem, "reference"), actual = RunKernel(problem, "oneDNN");
    ExpectClose(expected.destination, actual.destination, 1e-5f, "destination");
    ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, "source gradient");
    ExpectClose(expected.weights_gradient, actual.weights_gradient, 1e-5f, "weights gradient");
    if (bias) ExpectClose(expected.bias_gradient, actual.bias_gradient, 1e-5f, "bias gradient");
  }
}

TEST_P(Convolution, MayKeepWeightsInAFormOfItsOwn) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    ConvolutionProblem problem = ProblemOf(GetParam(), true);
    problem.layout = layout;
    problem.source_gradient = problem.weights_gradient = problem.bias_gradient = true;
    const Results expected = RunKernel(problem, "oneDNN");
    problem.lay_out_weights = true;
    const Results actual = RunKernel(problem, "oneDNN");
    ExpectClose(expected.destination, actual.destination, 1e-6f, "destination");
    ExpectClose(expected.source_gradient, actual.source_gradient, 1e-6f, "source gradient");
    ExpectClose(expected.weights_gradient, actual.weights_gradient, 1e-6f, "weights gradient");
    ExpectClose(expected.bias_gradient, actual.bias_gradient, 1e-6f, "bias gradient");
  }
}

bool HasBFloat16() {
  ConvolutionProblem problem = ProblemOf(kCases[0], true);
  problem.dtype = DType::kBF16;
  return MakeConvolution(problem, CpuDevice(), nullptr, "oneDNN") != nullptr;
}

// With all gradients, weights plain or in the kernel's own form, images plain or with channels last.
void ExpectReference(ConvolutionProblem problem, DType dtype) {
  problem.source_gradient = problem.weights_gradient = problem.bias_gradient = true;
  const float rounding = dtype == DType::kBF16 ? 5e-3f : 2e-5f;
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    problem.layout = layout;
    problem.dtype = DType::kF32;
    problem.lay_out_weights = false;
    const Results expected = RunKernel(problem, "reference", true);
    problem.dtype = dtype;
    for (const bool laid_out : {false, true}) {
      problem.lay_out_weights = laid_out;
      const Results actual = RunKernel(problem, "oneDNN", true);
      ExpectClose(expected.destination, actual.destination, rounding, "destination");
      ExpectClose(expected.source_gradient, actual.source_gradient, rounding, "source gradient");
      ExpectClose(expected.weights_gradient, actual.weights_gradient, 2e-5f, "weights gradient");
      ExpectClose(expected.bias_gradient, actual.bias_gradient, 2e-5f, "bias gradient");
    }
  }
}

TEST_P(Convolution, ComputesInBFloat16) {
  if (!HasBFloat16()) GTEST_SKIP() << "this processor is not asked to";
  ExpectReference(ProblemOf(GetParam(), true), DType::kBF16);
}

TEST_P(Convolution, EndsWithAnActivation) {
  using Kind = Activation::Kind;
  for (const Activation& activation :
       {Activation{Kind::kRelu}, Activation{Kind::kRelu, 0.25f}, Activation{Kind::kRelu6}, Activation{Kind::kSigmoid},
        Activation{Kind::kTanh}, Activation{Kind::kSwish, 1.5f}, Activation{Kind::kHardSwish}, Activation{Kind::kMish},
        Activation{Kind::kElu, 1.5f}}) {
    ConvolutionProblem problem = ProblemOf(GetParam(), true);
    const Results plain = RunKernel(problem, "reference");
    problem.activation = activation;
    std::vector<float> expected = plain.destination;
    ActivateFloats(activation, static_cast<int64_t>(expected.size()), expected.data(), expected.data());
    ExpectClose(expected, RunKernel(problem, "reference").destination, 1e-6f, "reference");
    ExpectClose(expected, RunKernel(problem, "oneDNN").destination, 4e-5f, "oneDNN");
  }
}

TEST_P(Convolution, AddsToWhatIsThere) {
  ConvolutionProblem problem = ProblemOf(GetParam(), true);
  std::vector<float> expected = RunKernel(problem, "reference").destination;
  const auto addend = RandomValues(problem.destination_shape().count(), 4);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0f, expected[i] + addend[i]);
  problem.sum = true;
  problem.activation = {Activation::Kind::kRelu};
  ExpectClose(expected, RunKernel(problem, "reference").destination, 1e-6f, "reference");
  ExpectClose(expected, RunKernel(problem, "oneDNN").destination, 1e-5f, "oneDNN");
  problem.layout = Layout::kChannelsLast;
  ExpectClose(RunKernel(problem, "reference").destination, RunKernel(problem, "oneDNN").destination, 1e-5f,
              "channels last");
}

TEST_P(Convolution, WritesOnlyTheGradientsAskedFor) {
  ConvolutionProblem problem = ProblemOf(GetParam(), true);
  problem.source_gradient = problem.weights_gradient = problem.bias_gradient = true;
  const Results all = RunKernel(problem, "reference");
  for (int wanted = 0; wanted < 8; ++wanted) {
    problem.source_gradient = wanted & 1;
    problem.weights_gradient = wanted & 2;
    problem.bias_gradient = wanted & 4;
    const Results some = RunKernel(problem, "oneDNN");
    const auto check = [&](bool asked, const std::vector<float>& expected, const std::vector<float>& actual) {
      if (asked) {
        ExpectClose(expected, actual, 1e-5f, "gradients " + std::to_string(wanted));
      } else {
        for (const float x : actual) ASSERT_TRUE(std::isnan(x));
      }
    };
    check(problem.source_gradient, all.source_gradient, some.source_gradient);
    check(problem.weights_gradient, all.weights_gradient, some.weights_gradient);
    check(problem.bias_gradient, all.bias_gradient, some.bias_gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolution, testing::ValuesIn(kCases), [](const auto& info) {
  std::string name;
  for (const char* c = info.param.name; *c; ++c) name += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_';
  return name;
});

// Sizes that nobody thought of: oneDNN's many kernels each have their own corners, and every processor gets others.
ConvolutionProblem Drawn(uint64_t stream) {
  const RandomStream random(7, stream);
  uint64_t next = 0;
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.Uniform(next++) * static_cast<float>(most - least + 1));
  };
  ConvolutionProblem p;
  p.batch = draw(1, 2);
  p.groups = draw(0, 2) == 0 ? draw(2, 20) : 1;
  const bool depthwise = p.groups > 1 && draw(0, 1);
  p.channels = p.groups * (depthwise ? 1 : draw(1, p.groups > 1 ? 5 : 40));
  p.outputs = p.groups * (depthwise ? 1 : draw(1, p.groups > 1 ? 5 : 40));
  const bool one_tap = draw(0, 2) == 0;
  for (int64_t axes = draw(0, 3) ? 2 : draw(1, 3); axes > 0; --axes) {
    p.kernel.push_back(one_tap ? 1 : draw(1, 5));
    p.dilation.push_back(draw(0, 3) ? 1 : draw(2, 4));
    p.stride.push_back(draw(0, 1) ? 1 : draw(2, 4));
    p.pad.push_back(draw(0, 1) ? p.kernel.back() / 2 : draw(0, 6));
    const int64_t extent = p.dilation.back() * (p.kernel.back() - 1) + 1;
    p.input.push_back(std::max(draw(1, 12), extent - 2 * p.pad.back()));
  }
  return p;
}

TEST(ConvolutionDraws, EqualReference) {
  const bool bfloat16 = HasBFloat16();
  for (uint64_t i = 0; i < 60; ++i) {
    ConvolutionProblem problem = Drawn(i);
    const auto text = [](const std::vector<int64_t>& values) { return testing::PrintToString(values); };
    SCOPED_TRACE(problem.source_shape().ToString() + " to " + std::to_string(problem.outputs) + " in " +
                 std::to_string(problem.groups) + " groups, kernel " + text(problem.kernel) + ", stride " +
                 text(problem.stride) + ", pad " + text(problem.pad) + ", dilation " + text(problem.dilation));
    ExpectReference(problem, DType::kF32);
    if (bfloat16) ExpectReference(problem, DType::kBF16);
    problem.sum = true;
    problem.activation = {Activation::Kind::kRelu};
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
      problem.layout = layout;
      ExpectClose(RunKernel(problem, "reference").destination, RunKernel(problem, "oneDNN").destination, 2e-5f, "sum");
    }
  }
}

// The reference itself against numbers worked out by hand: 3x3 input 1..9, kernel {1 2; 3 4}, bias 10.
TEST(ConvolutionReference, MatchesHandComputedValues) {
  ConvolutionProblem problem{.input = {3, 3}, .kernel = {2, 2}, .stride = {1, 1}, .dilation = {1, 1}, .pad = {0, 0}};
  problem.source_gradient = problem.weights_gradient = problem.bias_gradient = true;
  const auto kernel = MakeConvolution(problem, CpuDevice(), nullptr, "reference");
  std::vector<float> source(9);
  std::iota(source.begin(), source.end(), 1.0f);
  const std::vector<float> weights{1, 2, 3, 4}, bias{10};
  auto destination = Poison(4), source_gradient = Poison(9), weights_gradient = Poison(4), bias_gradient = Poison(1);
  kernel->Forward(source.data(), weights.data(), bias.data(), destination.data(), nullptr);
  EXPECT_EQ(destination, (std::vector<float>{47, 57, 77, 87}));
  const std::vector<float> ones(4, 1.0f);
  kernel->Backward(source.data(), weights.data(), ones.data(), source_gradient.data(), weights_gradient.data(),
                   bias_gradient.data(), nullptr);
  EXPECT_EQ(source_gradient, (std::vector<float>{1, 3, 2, 4, 10, 6, 3, 7, 4}));
  EXPECT_EQ(weights_gradient, (std::vector<float>{12, 16, 24, 28}));
  EXPECT_EQ(bias_gradient, (std::vector<float>{4}));
}

TEST(ConvolutionChoice, FourSpatialAxesFallBackToTheReferenceWithAReason) {
  ConvolutionProblem problem{.batch = 2, .channels = 2, .outputs = 3};
  problem.input = {3, 4, 3, 5};
  problem.kernel = {2, 2, 1, 3};
  problem.stride = problem.dilation = {1, 1, 1, 1};
  problem.pad = {0, 1, 0, 0};
  KernelChoice choice;
  const auto kernel = MakeConvolution(problem, CpuDevice(), &choice);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(choice.kernel, "reference");
  ASSERT_EQ(choice.skipped.size(), 2u);
  EXPECT_EQ(choice.skipped[1], "oneDNN: 4 spatial axes, it takes 1 to 3");
}

TEST(ConvolutionChoice, UnknownNameMakesNoKernel) {
  const ConvolutionProblem problem = ProblemOf(kCases[0], true);
  EXPECT_EQ(MakeConvolution(problem, CpuDevice(), nullptr, "no such kernel"), nullptr);
}

// Several nets may run at once, each in its own thread.
TEST(ConvolutionThreads, KernelsRunSideBySide) {
  ConvolutionProblem problem = ProblemOf(kCases[1], true);
  problem.source_gradient = problem.weights_gradient = problem.bias_gradient = true;
  const Results expected = RunKernel(problem, "oneDNN");
  std::vector<Results> results(4);
  std::vector<std::thread> threads;
  for (Results& result : results) {
    threads.emplace_back([&result, &problem] {
      for (int i = 0; i < 5; ++i) result = RunKernel(problem, "oneDNN");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Results& result : results) {
    ExpectClose(expected.destination, result.destination, 1e-6f, "destination");
    ExpectClose(expected.weights_gradient, result.weights_gradient, 1e-5f, "weights gradient");
  }
}

TEST(ConvolutionFlops, CountMultiplyAndAdd) {
  // 20 filters of 25 taps on 24x24 pixels of 64 images
  const ConvolutionProblem problem{.batch = 64,
                                   .channels = 1,
                                   .outputs = 20,
                                   .input = {28, 28},
                                   .kernel = {5, 5},
                                   .stride = {1, 1},
                                   .dilation = {1, 1},
                                   .pad = {0, 0}};
  EXPECT_EQ(problem.flops(), 2.0 * 64 * 20 * 24 * 24 * 25);
}

}  // namespace
}  // namespace crema
