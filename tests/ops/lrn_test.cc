#include "ops/normalization/lrn.h"

#include <gtest/gtest.h>

#include "comparison.h"

namespace crema {
namespace {

using Region = LrnProblem::Region;

const LrnProblem kCases[] = {
    {Region::kAcrossChannels, Layout::kPlain, 2, 7, 5, 6, 5, 1e-1f, 0.75f, 1, true},
    {Region::kAcrossChannels, Layout::kPlain, 2, 96, 9, 9, 5, 1e-4f, 0.75f, 2, true},
    {Region::kAcrossChannels, Layout::kPlain, 1, 3, 19, 17, 9, 0.5f, 0.6f, 1.5f, true},
    {Region::kAcrossChannels, Layout::kPlain, 3, 1, 4, 4, 3, 0.5f, 0.5f, 1, true},
    {Region::kAcrossChannels, Layout::kPlain, 2, 6, 1, 1, 1, 2.0f, 1.0f, 1, true},
    {Region::kWithinChannel, Layout::kPlain, 2, 3, 7, 6, 3, 5e-1f, 0.75f, 1, true},
    {Region::kWithinChannel, Layout::kPlain, 1, 32, 16, 16, 3, 5e-5f, 0.75f, 1, true},
    {Region::kWithinChannel, Layout::kPlain, 1, 2, 3, 4, 9, 1.0f, 0.9f, 1, true},
    {Region::kWithinChannel, Layout::kPlain, 2, 2, 1, 1, 1, 1.0f, 0.75f, 1, true},
    {Region::kWithinChannel, Layout::kPlain, 1, 1, 11, 2, 5, 1.0f, 0.75f, 1, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 2, 7, 5, 6, 5, 1e-1f, 0.75f, 1, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 2, 96, 9, 9, 5, 1e-4f, 0.75f, 2, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 1, 3, 19, 17, 9, 0.5f, 0.6f, 1.5f, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 3, 1, 4, 4, 3, 0.5f, 0.5f, 1, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 2, 6, 1, 1, 1, 2.0f, 1.0f, 1, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 2, 20, 24, 24, 5, 1e-1f, 0.75f, 1, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 1, 1100, 3, 2, 3, 1e-1f, 0.75f, 1, true},
    {Region::kAcrossChannels, Layout::kChannelsLast, 1, 4, 2, 2, 101, 1e-1f, 0.75f, 1, true},
};

struct Results {
  std::vector<float> destination, source_gradient;
};

Results RunKernel(const LrnProblem& problem, const char* only) {
  const auto kernel = MakeLrn(problem, CpuDevice(), nullptr, only);
  EXPECT_NE(kernel, nullptr);
  const int64_t count = problem.batch * problem.channels * problem.height * problem.width;
  const auto source = RandomValues(count, 1), gradient = RandomValues(count, 2);
  Results results{Poison(count), Poison(count)};
  const PoisonedWorkspace forward(kernel->forward_workspace()), backward(kernel->backward_workspace());
  kernel->Forward(source.data(), results.destination.data(), forward.data());
  kernel->Backward(source.data(), gradient.data(), results.source_gradient.data(), backward.data());
  return results;
}

TEST(Lrn, EqualsReference) {
  for (const LrnProblem& problem : kCases) {
    KernelChoice choice;
    ASSERT_NE(MakeLrn(problem, CpuDevice(), &choice), nullptr);
    EXPECT_NE(choice.kernel, "reference");
    const Results expected = RunKernel(problem, "reference"), actual = RunKernel(problem, "");
    const std::string what = "case " + std::to_string(&problem - kCases);
    ExpectClose(expected.destination, actual.destination, 1e-5f, what + " destination");
    ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, what + " source gradient");
  }
}

TEST(Lrn, BFloat16RoundsOnce) {
  for (LrnProblem problem : kCases) {
    if (problem.layout != Layout::kChannelsLast || problem.region != Region::kAcrossChannels) continue;
    const int64_t count = problem.batch * problem.channels * problem.height * problem.width;
    const auto source = Rounded(RandomValues(count, 1)), gradient = Rounded(RandomValues(count, 2));
    const auto run = [&](DType dtype, auto from, auto top_gradient) {
      problem.dtype = dtype;
      const auto kernel = MakeLrn(problem, CpuDevice(), nullptr, dtype == DType::kF32 ? "reference" : "");
      auto destination = from, source_gradient = from;
      const PoisonedWorkspace forward(kernel->forward_workspace()), backward(kernel->backward_workspace());
      kernel->Forward(from.data(), destination.data(), forward.data());
      kernel->Backward(from.data(), top_gradient.data(), source_gradient.data(), backward.data());
      return std::pair{std::vector<float>(destination.begin(), destination.end()),
                       std::vector<float>(source_gradient.begin(), source_gradient.end())};
    };
    const auto [expected, expected_gradient] = run(DType::kF32, Widened(source), Widened(gradient));
    const auto [actual, actual_gradient] = run(DType::kBF16, source, gradient);
    ExpectRounded(expected, actual, "destination");
    ExpectRounded(expected_gradient, actual_gradient, "source gradient");
  }
}

// Two channels 1 and 2, window of 3: both scales are 1 + 3/3 * (1 + 4) = 6.
TEST(LrnReference, AcrossChannelsMatchesHandComputedValues) {
  const LrnProblem problem{.channels = 2, .size = 3, .alpha = 3, .beta = 0.5f, .backward = true};
  const auto kernel = MakeLrn(problem, CpuDevice(), nullptr, "reference");
  const std::vector<float> source{1, 2};
  auto destination = Poison(2);
  kernel->Forward(source.data(), destination.data(), nullptr);
  EXPECT_NEAR(destination[0], 1 / std::sqrt(6.0), 1e-6);
  EXPECT_NEAR(destination[1], 2 / std::sqrt(6.0), 1e-6);
}

// One row 1 2, window 3x3: the average counts the padding, (1 + 4) / 9.
TEST(LrnReference, WithinChannelCountsThePaddingAndIgnoresK) {
  const LrnProblem problem{
      .region = Region::kWithinChannel, .width = 2, .size = 3, .alpha = 9, .beta = 1, .k = 100, .backward = true};
  const auto kernel = MakeLrn(problem, CpuDevice(), nullptr, "reference");
  const std::vector<float> source{1, 2};
  auto destination = Poison(2);
  kernel->Forward(source.data(), destination.data(), nullptr);
  EXPECT_NEAR(destination[0], 1 / 6.0, 1e-6);
  EXPECT_NEAR(destination[1], 2 / 6.0, 1e-6);
}

TEST(LrnReference, GradientIsTheSlope) {
  for (const LrnProblem& problem : kCases) {
    const int64_t count = problem.batch * problem.channels * problem.height * problem.width;
    if (count > 500) continue;
    const auto kernel = MakeLrn(problem, CpuDevice(), nullptr, "reference");
    auto source = RandomValues(count, 1);
    const auto weights = RandomValues(count, 2);
    auto gradient = Poison(count), high = Poison(count), low = Poison(count);
    kernel->Backward(source.data(), weights.data(), gradient.data(), nullptr);
    for (int64_t i = 0; i < count; ++i) {
      const float x = source[i], step = 1e-2f;
      source[i] = x + step;
      kernel->Forward(source.data(), high.data(), nullptr);
      source[i] = x - step;
      kernel->Forward(source.data(), low.data(), nullptr);
      source[i] = x;
      double slope = 0;
      for (int64_t j = 0; j < count; ++j) slope += weights[j] * (double{high[j]} - low[j]) / (2 * step);
      ASSERT_NEAR(slope, gradient[i], 2e-3) << "case " << &problem - kCases << " element " << i;
    }
  }
}

}  // namespace
}  // namespace crema
