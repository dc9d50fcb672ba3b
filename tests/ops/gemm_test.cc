#include "ops/matrices/gemm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "base/bfloat16.h"
#include "comparison.h"
#include "ops/matrices/inner_product.h"

namespace crema {
namespace {

struct Sizes {
  int64_t m, n, k;
};
const Sizes kSizes[] = {{1, 1, 1},   {3, 5, 7},     {64, 500, 80},   {64, 10, 50},    {17, 1, 33},
                        {1, 40, 12}, {130, 66, 70}, {140, 150, 160}, {520, 530, 540}, {32, 70, 2100}};

TEST(Gemm, EqualsReference) {
  for (const auto& [m, n, k] : kSizes) {
    for (int form = 0; form < 8; ++form) {
      const bool transpose_a = form & 1, transpose_b = form & 2;
      const float alpha = form & 4 ? 0.5f : 1.0f, beta = form & 4 ? 2.0f : 0.0f;
      const auto a = RandomValues(m * k, 1), b = RandomValues(k * n, 2);
      // beta == 0 must not read C: NaN would survive.
      auto expected = beta == 0 ? Poison(m * n) : RandomValues(m * n, 3), actual = expected;
      GemmReference(transpose_a, transpose_b, m, n, k, alpha, a.data(), b.data(), beta, expected.data());
      Gemm(transpose_a, transpose_b, m, n, k, alpha, a.data(), b.data(), beta, actual.data());
      ExpectClose(expected, actual, 1e-5f, "gemm form " + std::to_string(form));
    }
  }
}

TEST(Gemm, KernelsOfOldProcessorsAreKnownByName) {
  EXPECT_EQ(OpenBlasLanes("Prescott"), 4);
  EXPECT_EQ(OpenBlasLanes("Nehalem"), 4);
  EXPECT_EQ(OpenBlasLanes("Haswell"), 8);
  EXPECT_EQ(OpenBlasLanes("Zen"), 8);
  EXPECT_EQ(OpenBlasLanes("SkylakeX"), 16);
  EXPECT_EQ(OpenBlasLanes("Cooperlake"), 16);
}

TEST(Gemm, EmptySumIsZeroAndEmptyResultIsLeftAlone) {
  auto c = Poison(6);
  Gemm(false, false, 2, 3, 0, 1, nullptr, nullptr, 0, c.data());
  EXPECT_EQ(c, std::vector<float>(6, 0.0f));
  Gemm(false, false, 0, 3, 2, 1, nullptr, nullptr, 0, nullptr);
}

TEST(Gemm, NothingOfTheProductAndOfWhatWasThereIsZero) {
  const auto a = RandomValues(54 * 4, 1), b = RandomValues(4 * 105, 2);
  for (const bool transpose : {false, true}) {
    auto c = Poison(54 * 105);
    Gemm(false, transpose, 54, 105, 4, 0, a.data(), b.data(), 0, c.data());
    EXPECT_EQ(c, std::vector<float>(54 * 105, 0.0f));
  }
}

TEST(Gemm, StridedReadsSubmatrices) {
  // The top left 2x2 of 3x4 times the left 2x3 of 2x5, into the left of 2x6.
  const auto a = RandomValues(12, 1), b = RandomValues(10, 2);
  auto c = std::vector<float>(12, 7.0f);
  GemmStrided(false, false, 2, 3, 2, 1, a.data(), 4, b.data(), 5, 0, c.data(), 6);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 6; ++j) {
      const float expected = j < 3 ? a[i * 4] * b[j] + a[i * 4 + 1] * b[5 + j] : 7.0f;
      EXPECT_NEAR(c[i * 6 + j], expected, 1e-6f);
    }
  }
}

struct Results {
  std::vector<float> destination, source_gradient, weights_gradient, bias_gradient;
};

// What bf16 holds exactly.
std::vector<float> Rounded(std::vector<float> values) {
  std::vector<BFloat16> rounded(values.size());
  FromFloats(values.data(), static_cast<int64_t>(values.size()), rounded.data());
  ToFloats(rounded.data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

Results RunKernel(const InnerProductProblem& problem, const char* name) {
  KernelChoice choice;
  const auto kernel = MakeInnerProduct(problem, CpuDevice(), &choice, name);
  EXPECT_NE(kernel, nullptr);
  EXPECT_EQ(choice.kernel, name);
  const auto source = Rounded(RandomValues(problem.rows * problem.inputs, 1));
  const auto weights = Rounded(RandomValues(problem.inputs * problem.outputs, 2));
  const auto bias = RandomValues(problem.outputs, 3);
  const auto gradient = Rounded(RandomValues(problem.rows * problem.outputs, 4));
  Results results{Poison(gradient.size()), Poison(source.size()), Poison(weights.size()), Poison(bias.size())};
  const PoisonedWorkspace forward(kernel->forward_workspace()), backward(kernel->backward_workspace());
  kernel->Forward(source.data(), weights.data(), problem.bias ? bias.data() : nullptr, results.destination.data(),
                  forward.data());
  kernel->Backward(source.data(), weights.data(), gradient.data(),
                   problem.source_gradient ? results.source_gradient.data() : nullptr,
                   problem.weights_gradient ? results.weights_gradient.data() : nullptr,
                   problem.bias_gradient ? results.bias_gradient.data() : nullptr, backward.data());
  return results;
}

void ExpectAlike(const Results& expected, const Results& actual, bool bias) {
  ExpectClose(expected.destination, actual.destination, 1e-5f, "destination");
  ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, "source gradient");
  ExpectClose(expected.weights_gradient, actual.weights_gradient, 1e-5f, "weights gradient");
  if (bias) ExpectClose(expected.bias_gradient, actual.bias_gradient, 1e-5f, "bias gradient");
}

TEST(InnerProduct, EqualsReference) {
  for (const auto& [rows, outputs, inputs] : kSizes) {
    for (int form = 0; form < 4; ++form) {
      const bool bias = form & 2;
      const InnerProductProblem problem{.rows = rows,
                                        .inputs = inputs,
                                        .outputs = outputs,
                                        .transpose = (form & 1) != 0,
                                        .bias = bias,
                                        .source_gradient = true,
                                        .weights_gradient = true,
                                        .bias_gradient = bias};
      ExpectAlike(RunKernel(problem, "reference"), RunKernel(problem, "gemm"), bias);
    }
  }
}

TEST(InnerProduct, InBFloat16AddsInF32) {
  InnerProductProblem problem{.rows = 128, .inputs = 1, .outputs = 1, .factors = Factors::kBF16};
  if (!MakeInnerProduct(problem, CpuDevice(), nullptr, "oneDNN bf16")) {
    GTEST_SKIP() << "oneDNN multiplies no bf16 numbers on this CPU";
  }
  problem.source_gradient = problem.weights_gradient = true;
  for (const int64_t rows : {128, 201}) {
    for (int form = 0; form < 4; ++form) {
      problem.rows = rows;
      problem.inputs = 70;
      problem.outputs = 45;
      problem.transpose = (form & 1) != 0;
      problem.bias = problem.bias_gradient = (form & 2) != 0;
      ExpectAlike(RunKernel(problem, "reference"), RunKernel(problem, "oneDNN bf16"), problem.bias);
    }
  }
}

// Many outputs in whole blocks, which threads share.
TEST(InnerProduct, GradientOfFewInputsInBFloat16) {
  InnerProductProblem problem{.rows = 128, .inputs = 16, .outputs = 2112, .bias = false, .factors = Factors::kBF16};
  problem.source_gradient = problem.weights_gradient = true;
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  if (MakeInnerProduct(problem, CpuDevice(), nullptr, "oneDNN bf16")) {
    ExpectAlike(RunKernel(problem, "reference"), RunKernel(problem, "oneDNN bf16"), false);
  }
  omp_set_num_threads(before);
}

TEST(InnerProduct, IsInBFloat16OnlyWhereThatIsAskedFor) {
  KernelChoice choice;
  MakeInnerProduct({.rows = 200, .inputs = 3, .outputs = 4}, CpuDevice(), &choice);
  EXPECT_EQ(choice.kernel, "gemm");
}

TEST(InnerProduct, OfFewRowsIsInF32) {
  KernelChoice choice;
  MakeInnerProduct({.rows = 127, .inputs = 3, .outputs = 4, .factors = Factors::kBF16}, CpuDevice(), &choice);
  EXPECT_EQ(choice.kernel, "gemm");
  ASSERT_EQ(choice.skipped.size(), 1u);
  EXPECT_EQ(choice.skipped[0], "oneDNN bf16: f32 is faster with less than 128 rows");
}

TEST(InnerProduct, WritesOnlyTheGradientsAskedFor) {
  InnerProductProblem problem{.rows = 3, .inputs = 4, .outputs = 5, .bias_gradient = true};
  const Results results = RunKernel(problem, "gemm");
  for (const float x : results.source_gradient) EXPECT_TRUE(std::isnan(x));
  for (const float x : results.weights_gradient) EXPECT_TRUE(std::isnan(x));
  for (const float x : results.bias_gradient) EXPECT_FALSE(std::isnan(x));
}

// One row, weights {1 2; 3 4; 5 6} as 3 outputs x 2 inputs.
TEST(InnerProduct, MatchesHandComputedValues) {
  const InnerProductProblem problem{
      .rows = 1, .inputs = 2, .outputs = 3, .source_gradient = true, .weights_gradient = true, .bias_gradient = true};
  const auto kernel = MakeInnerProduct(problem, CpuDevice(), nullptr);
  const std::vector<float> source{10, 20}, weights{1, 2, 3, 4, 5, 6}, bias{1, 2, 3}, gradient{1, 2, 3};
  auto destination = Poison(3), source_gradient = Poison(2), weights_gradient = Poison(6), bias_gradient = Poison(3);
  kernel->Forward(source.data(), weights.data(), bias.data(), destination.data(), nullptr);
  EXPECT_EQ(destination, (std::vector<float>{51, 112, 173}));
  kernel->Backward(source.data(), weights.data(), gradient.data(), source_gradient.data(), weights_gradient.data(),
                   bias_gradient.data(), nullptr);
  EXPECT_EQ(source_gradient, (std::vector<float>{22, 28}));
  EXPECT_EQ(weights_gradient, (std::vector<float>{10, 20, 20, 40, 30, 60}));
  EXPECT_EQ(bias_gradient, gradient);
}

}  // namespace
}  // namespace crema
