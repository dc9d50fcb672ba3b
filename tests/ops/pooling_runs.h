// Runs of a pooling kernel beside the plain loops.
#ifndef CREMA_TESTS_OPS_POOLING_RUNS_H_
#define CREMA_TESTS_OPS_POOLING_RUNS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "comparison.h"
#include "ops/pooling/pooling.h"

namespace crema {

// What one run of a kernel makes.
struct PoolingResults {
  std::vector<float> destination, indices, source_gradient;
};

inline PoolingResults RunPooling(const PoolingProblem& problem, const char* name, const std::vector<float>& source) {
  KernelChoice choice;
  const auto kernel = MakePooling(problem, CpuDevice(), &choice, name);
  EXPECT_NE(kernel, nullptr);
  EXPECT_EQ(choice.kernel == "reference", name == std::string("reference"));
  const int64_t outputs = problem.outputs();
  const auto gradient = RandomValues(outputs, 2);
  PoolingResults results{Poison(outputs), Poison(outputs), Poison(source.size())};
  const PoisonedWorkspace saved(kernel->saved().bytes());
  const RandomStream random(7, 8);
  kernel->Forward(source.data(), results.destination.data(), saved.data(),
                  problem.method == PoolingMethod::kMax ? results.indices.data() : nullptr, &random);
  kernel->Backward(source.data(), gradient.data(), saved.data(), results.source_gradient.data());
  return results;
}

// Two of them with channels last, of channel counts that fill vectors and that leave a rest, by turns.
inline PoolingProblem WithChannelsLast(PoolingProblem problem, int64_t turn) {
  constexpr int64_t kChannels[] = {1, 3, 16, 20, 50, 64};
  problem.layout = Layout::kChannelsLast;
  problem.batch = 2;
  problem.channels = kChannels[turn % static_cast<int64_t>(std::size(kChannels))];
  return problem;
}

inline void ExpectEqualsReference(const PoolingProblem& problem, const std::string& what) {
  const auto source = RandomValues(problem.inputs(), 1);
  const PoolingResults expected = RunPooling(problem, "reference", source), actual = RunPooling(problem, "", source);
  ExpectClose(expected.destination, actual.destination, 1e-6f, what + " destination");
  ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, what + " source gradient");
  if (problem.method == PoolingMethod::kMax) {
    EXPECT_EQ(expected.indices, actual.indices) << what;
  }
}

// Of numbers that bf16 holds, the maximum is one of them, and sums differ by their one rounding.
inline void ExpectRoundsOnce(PoolingProblem problem, const std::string& what) {
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

}  // namespace crema

#endif  // CREMA_TESTS_OPS_POOLING_RUNS_H_
