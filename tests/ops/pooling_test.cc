#include "ops/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comparison.h"

namespace crema {
namespace {

struct Case {
  int64_t channels, height, width;
  PoolingWindow vertical, horizontal;
  bool ceil;
};

const Case kCases[] = {
    {3, 24, 24, {2, 2, 0}, {2, 2, 0}, true},   {3, 8, 8, {2, 2, 0}, {2, 2, 0}, true},
    {5, 7, 9, {2, 2, 0}, {2, 2, 0}, true},     {5, 7, 9, {2, 2, 0}, {2, 2, 0}, false},
    {4, 32, 32, {3, 2, 0}, {3, 2, 0}, true},   {4, 13, 14, {3, 2, 1}, {3, 2, 1}, true},
    {4, 14, 13, {3, 1, 1}, {3, 1, 1}, true},   {2, 9, 9, {3, 3, 0}, {3, 3, 0}, true},
    {2, 9, 9, {2, 1, 0}, {2, 1, 0}, true},     {2, 10, 11, {5, 3, 2}, {4, 2, 1}, true},
    {2, 7, 7, {7, 1, 0}, {7, 1, 0}, true},     {2, 20, 21, {20, 1, 0}, {21, 1, 0}, true},
    {1, 40, 700, {3, 2, 1}, {3, 2, 1}, true},  {2, 8, 8, {1, 3, 0}, {1, 3, 0}, true},
    {2, 5, 6, {3, 2, 2}, {3, 2, 2}, true},     {2, 1, 1, {1, 1, 0}, {1, 1, 0}, true},
    {2, 4, 4, {2, 3, 1}, {2, 3, 1}, true},     {1, 3, 4, {4, 2, 0}, {5, 3, 0}, true},
    {1, 2, 9000, {2, 2, 0}, {40, 7, 3}, true}, {1, 17, 18, {17, 2, 0}, {16, 2, 0}, true},
    {2, 12, 5, {3, 2, 0}, {1, 1, 0}, false},   {1, 8, 9, {3, 5, 0}, {2, 6, 0}, true},
    {2, 11, 7, {4, 4, 0}, {4, 4, 0}, false},   {1, 37, 36, {17, 17, 0}, {17, 17, 0}, false},
};

PoolingProblem Problem(const Case& test, PoolingMethod method) {
  const bool padded = test.vertical.pad > 0 || test.horizontal.pad > 0;
  return {.method = method,
          .channels = test.channels,
          .input_height = test.height,
          .input_width = test.width,
          .vertical = test.vertical,
          .horizontal = test.horizontal,
          .output_height = PooledExtent(test.height, test.vertical, test.ceil, padded),
          .output_width = PooledExtent(test.width, test.horizontal, test.ceil, padded),
          .training = true,
          .backward = true};
}

// Two images with channels last, of channel counts that fill vectors and that leave a rest.
PoolingProblem ChannelsLast(const Case& test, PoolingMethod method) {
  constexpr int64_t kChannels[] = {1, 3, 16, 20, 50, 64};
  PoolingProblem problem = Problem(test, method);
  problem.layout = Layout::kChannelsLast;
  problem.batch = 2;
  problem.channels = kChannels[(&test - kCases) % std::size(kChannels)];
  return problem;
}

struct Results {
  std::vector<float> destination, indices, source_gradient;
};

Results RunKernel(const PoolingProblem& problem, const char* name, const std::vector<float>& source) {
  KernelChoice choice;
  const auto kernel = MakePooling(problem, CpuDevice(), &choice, name);
  EXPECT_NE(kernel, nullptr);
  EXPECT_EQ(choice.kernel == "reference", name == std::string("reference"));
  const int64_t outputs = problem.outputs();
  const auto gradient = RandomValues(outputs, 2);
  Results results{Poison(outputs), Poison(outputs), Poison(source.size())};
  const PoisonedWorkspace saved(kernel->saved().bytes());
  const RandomStream random(7, 8);
  kernel->Forward(source.data(), results.destination.data(), saved.data(),
                  problem.method == PoolingMethod::kMax ? results.indices.data() : nullptr, &random);
  kernel->Backward(source.data(), gradient.data(), saved.data(), results.source_gradient.data());
  return results;
}

void ExpectEqualsReference(const PoolingProblem& problem, const std::string& what) {
  const auto source = RandomValues(problem.inputs(), 1);
  const Results expected = RunKernel(problem, "reference", source), actual = RunKernel(problem, "", source);
  ExpectClose(expected.destination, actual.destination, 1e-6f, what + " destination");
  ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, what + " source gradient");
  if (problem.method == PoolingMethod::kMax) {
    EXPECT_EQ(expected.indices, actual.indices) << what;
  }
}

TEST(Pooling, EqualsReference) {
  for (const Case& test : kCases) {
    const std::string what = "case " + std::to_string(&test - kCases);
    for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
      ExpectEqualsReference(Problem(test, method), what);
      ExpectEqualsReference(ChannelsLast(test, method), what + " with channels last");
    }
  }
}

// Of numbers that bf16 holds, the maximum is one of them, and sums differ by their one rounding.
void ExpectRoundsOnce(PoolingProblem problem, const std::string& what) {
  const auto source = Rounded(RandomValues(problem.inputs(), 1)),
             gradient = Rounded(RandomValues(problem.outputs(), 2));
  const auto run = [&](DType dtype, auto from, auto top_gradient, auto poison) {
    problem.dtype = dtype;
    const auto kernel = MakePooling(problem, CpuDevice(), nullptr, dtype == DType::kF32 ? "reference" : "");
    using Numbers = decltype(from);
    const size_t outputs = problem.outputs(), inputs = problem.inputs();
    // One more, to see that nothing is written behind.
    Numbers destination(outputs + 1, poison), source_gradient(inputs + 1, poison);
    const PoisonedWorkspace saved(kernel->saved().bytes());
    kernel->Forward(from.data(), destination.data(), saved.data(), nullptr, nullptr);
    kernel->Backward(from.data(), top_gradient.data(), saved.data(), source_gradient.data());
    EXPECT_TRUE(std::isnan(destination.back()) && std::isnan(source_gradient.back())) << what;
    destination.pop_back();
    source_gradient.pop_back();
    return std::pair{std::vector<float>(destination.begin(), destination.end()),
                     std::vector<float>(source_gradient.begin(), source_gradient.end())};
  };
  const auto [expected, expected_gradient] = run(DType::kF32, Widened(source), Widened(gradient), std::nanf(""));
  const auto [actual, actual_gradient] = run(DType::kBF16, source, gradient, BFloat16(std::nanf("")));
  if (problem.method == PoolingMethod::kMax) {
    EXPECT_EQ(expected, actual) << what;
  }
  ExpectRounded(expected, actual, what + " destination");
  ExpectRounded(expected_gradient, actual_gradient, what + " source gradient");
}

TEST(Pooling, BFloat16RoundsOnce) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    for (const Case& test : kCases) {
      ExpectRoundsOnce(ChannelsLast(test, method), "case " + std::to_string(&test - kCases));
    }
    PoolingProblem problem = Problem({1, 7, 7, {7, 1, 0}, {7, 1, 0}, true}, method);
    problem.layout = Layout::kChannelsLast;
    problem.channels = 1100;
    ExpectRoundsOnce(problem, "many channels");
  }
}

TEST(Pooling, TakesManyChannelsLast) {
  PoolingProblem problem = Problem({1, 7, 7, {7, 1, 0}, {7, 1, 0}, true}, PoolingMethod::kMax);
  problem.layout = Layout::kChannelsLast;
  problem.channels = 1100;
  ExpectEqualsReference(problem, "maximum");
  problem.method = PoolingMethod::kAverage;
  ExpectEqualsReference(problem, "average");
}

// A kernel and its reference each read the layout in their own way; that both mean the same is checked here.
TEST(Pooling, LayoutsHoldTheSameNumbers) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    PoolingProblem plain = Problem({5, 7, 9, {3, 2, 1}, {2, 2, 0}, true}, method), last = plain;
    last.layout = Layout::kChannelsLast;
    const auto swap = [&](const std::vector<float>& from, int64_t pixels, bool to_last) {
      std::vector<float> to(from.size());
      for (int64_t c = 0; c < plain.channels; ++c) {
        for (int64_t i = 0; i < pixels; ++i) {
          const int64_t there = i * plain.channels + c, here = c * pixels + i;
          to[to_last ? there : here] = from[to_last ? here : there];
        }
      }
      return to;
    };
    const auto source = RandomValues(plain.inputs(), 1);
    const int64_t inputs = plain.input_height * plain.input_width, outputs = plain.output_height * plain.output_width;
    const Results expected = RunKernel(plain, "reference", source);
    const Results actual = RunKernel(last, "reference", swap(source, inputs, true));
    EXPECT_EQ(expected.destination, swap(actual.destination, outputs, false));
    if (method == PoolingMethod::kMax) {
      EXPECT_EQ(expected.indices, swap(actual.indices, outputs, false));
    }
  }
}

TEST(Pooling, TiesGoToTheFirstElementInRowMajorOrder) {
  for (const Case& test : kCases) {
    for (const PoolingProblem& problem :
         {Problem(test, PoolingMethod::kMax), ChannelsLast(test, PoolingMethod::kMax)}) {
      auto source = RandomValues(problem.inputs(), 1);
      for (float& x : source) x = x > 0 ? 1.0f : -0.0f;  // as behind a ReLU
      const Results expected = RunKernel(problem, "reference", source), actual = RunKernel(problem, "", source);
      EXPECT_EQ(expected.indices, actual.indices) << "case " << &test - kCases;
      ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, "source gradient");
    }
  }
  const PoolingProblem problem = Problem({1, 2, 2, {2, 2, 0}, {2, 2, 0}, true}, PoolingMethod::kMax);
  EXPECT_EQ(RunKernel(problem, "reference", {3, 3, 3, 3}).indices[0], 0.0f);
  EXPECT_EQ(RunKernel(problem, "reference", {2, 3, 3, 3}).indices[0], 1.0f);
}

TEST(Pooling, ForwardAloneKeepsNothing) {
  for (PoolingProblem problem :
       {Problem(kCases[4], PoolingMethod::kMax), ChannelsLast(kCases[4], PoolingMethod::kMax)}) {
    problem.backward = false;
    const auto kernel = MakePooling(problem, CpuDevice(), nullptr);
    EXPECT_EQ(kernel->saved().shape.count(), 0);
    const auto source = RandomValues(problem.inputs(), 1);
    auto destination = Poison(problem.outputs());
    kernel->Forward(source.data(), destination.data(), nullptr, nullptr, nullptr);
    problem.backward = true;
    EXPECT_EQ(destination, RunKernel(problem, "reference", source).destination);
  }
}

TEST(PooledExtent, FollowsCaffe) {
  EXPECT_EQ(PooledExtent(24, {2, 2, 0}, true, false), 12);
  EXPECT_EQ(PooledExtent(32, {3, 2, 0}, true, false), 16);  // ceil: the last window reaches past the input
  EXPECT_EQ(PooledExtent(32, {3, 2, 0}, false, false), 15);
  EXPECT_EQ(PooledExtent(112, {3, 2, 1}, true, true), 57);  // starts at 111, inside the input
  EXPECT_EQ(PooledExtent(4, {2, 3, 1}, true, true), 2);     // a third window would start at 5 = input + pad: dropped
  EXPECT_EQ(PooledExtent(8, {9, 1, 0}, true, false), 0);
  EXPECT_EQ(PooledExtent(8, {9, 2, 0}, true, false), 1);
  EXPECT_EQ(PooledExtent(8, {9, 2, 0}, false, false), 0);
  EXPECT_EQ(PooledExtent(6, {2, 3, 0}, true, false), 3);  // the third begins at 6, behind the input
  EXPECT_EQ(PooledExtent(6, {2, 3, 0}, true, true), 2);   // dropped as soon as the other axis is padded
}

// Training that diverges pools NaN: the gradient may be anything, but not outside the plane.
TEST(Pooling, NanKeepsWinnersInsideThePlane) {
  for (const Case& test : kCases) {
    for (const PoolingProblem& problem :
         {Problem(test, PoolingMethod::kMax), ChannelsLast(test, PoolingMethod::kMax)}) {
      const int64_t pixels = problem.input_height * problem.input_width;
      for (const int64_t every : {1, 2, 5}) {
        auto source = RandomValues(problem.inputs(), 1);
        for (size_t i = 0; i < source.size(); i += every) source[i] = std::nanf("");
        for (const float x : RunKernel(problem, "", source).indices) {
          ASSERT_TRUE(x >= -1 && x < static_cast<float>(pixels)) << "case " << &test - kCases << ": " << x;
        }
      }
    }
  }
}

TEST(Pooling, MinusInfinityIsAValueLikeOthers) {
  const Case test{2, 4, 4, {3, 2, 1}, {3, 2, 1}, true};
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    PoolingProblem problem = Problem(test, PoolingMethod::kMax);
    problem.layout = layout;
    const std::vector<float> source(problem.inputs(), -std::numeric_limits<float>::infinity());
    EXPECT_EQ(RunKernel(problem, "reference", source).indices, RunKernel(problem, "", source).indices);
  }
}

// Padding counts in the divisor, what lies behind the padding does not.
TEST(PoolingReference, AverageDividesByTheWindowClippedToThePaddedInput) {
  // 1x4 row padded to 0 1 2 3 4 0; windows of 3, stride 3: {0 1 2} and {3 4 0}
  PoolingProblem problem = Problem({1, 1, 4, {1, 1, 0}, {3, 3, 1}, true}, PoolingMethod::kAverage);
  EXPECT_EQ(problem.output_width, 2);
  auto results = RunKernel(problem, "reference", {1, 2, 3, 4});
  EXPECT_FLOAT_EQ(results.destination[0], 1.0f);
  EXPECT_FLOAT_EQ(results.destination[1], 7.0f / 3);
  // 1x4 without padding, windows of 3, stride 2, ceil: {1 2 3} and {3 4}
  problem = Problem({1, 1, 4, {1, 1, 0}, {3, 2, 0}, true}, PoolingMethod::kAverage);
  results = RunKernel(problem, "reference", {1, 2, 3, 4});
  EXPECT_FLOAT_EQ(results.destination[0], 2.0f);
  EXPECT_FLOAT_EQ(results.destination[1], 3.5f);
}

TEST(StochasticPooling, DrawsInProportionToTheValues) {
  PoolingProblem problem = Problem({20000, 2, 2, {2, 2, 0}, {2, 2, 0}, true}, PoolingMethod::kStochastic);
  std::vector<float> source;
  for (int64_t i = 0; i < problem.planes(); ++i) source.insert(source.end(), {1, 2, 0, 5});
  const Results results = RunKernel(problem, "reference", source);
  const auto share = [&](float value) {
    return std::count(results.destination.begin(), results.destination.end(), value) / 20000.0;
  };
  EXPECT_NEAR(share(1), 1 / 8.0, 0.01);
  EXPECT_NEAR(share(2), 2 / 8.0, 0.01);
  EXPECT_NEAR(share(5), 5 / 8.0, 0.01);
  EXPECT_EQ(share(0), 0);
  // The gradient goes where the value came from.
  const auto gradient = RandomValues(problem.planes(), 2);
  for (int64_t i = 0; i < problem.planes(); ++i) {
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(results.source_gradient[4 * i + j], source[4 * i + j] == results.destination[i] ? gradient[i] : 0.0f);
    }
  }
}

TEST(StochasticPooling, WeighsByTheValuesWhenNotTraining) {
  PoolingProblem problem = Problem({1, 2, 2, {2, 2, 0}, {2, 2, 0}, true}, PoolingMethod::kStochastic);
  problem.training = false;
  const Results results = RunKernel(problem, "reference", {1, 2, 0, 5});
  EXPECT_FLOAT_EQ(results.destination[0], 30.0f / 8);
  const float gradient = RandomValues(1, 2)[0];
  EXPECT_NEAR(results.source_gradient[3], gradient * (10 - 30.0f / 8) / 8, 1e-6f);
  EXPECT_FLOAT_EQ(RunKernel(problem, "reference", {0, 0, 0, 0}).destination[0], 0.0f);
}

TEST(PoolingChoice, StochasticLeavesAReason) {
  KernelChoice choice;
  ASSERT_NE(MakePooling(Problem(kCases[0], PoolingMethod::kStochastic), CpuDevice(), &choice), nullptr);
  EXPECT_EQ(choice.kernel, "reference");
  EXPECT_EQ(choice.skipped,
            (std::vector<std::string>{"vectorised maximum: takes the maximum only",
                                      "vectorised average: takes the average only",
                                      "maximum with channels last: takes images with channels last only",
                                      "average with channels last: takes images with channels last only"}));
}

}  // namespace
}  // namespace crema
