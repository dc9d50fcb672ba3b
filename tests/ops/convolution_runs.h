// Runs all directions of a convolution's kernel.
#ifndef CREMA_TESTS_OPS_CONVOLUTION_RUNS_H_
#define CREMA_TESTS_OPS_CONVOLUTION_RUNS_H_

#include <gtest/gtest.h>

#include <vector>

#include "comparison.h"
#include "ops/convolution/convolution.h"

namespace crema {

struct Results {
  std::vector<float> destination, source_gradient, weights_gradient, bias_gradient;
};

// Runs every direction that the problem asks for, twice at other addresses, as a kernel keeps addresses it has seen.
// rounded: on numbers that are whole in bfloat16.
inline Results RunKernel(const ConvolutionProblem& problem, const char* name, bool rounded = false) {
  KernelChoice choice;
  const auto kernel = MakeConvolution(problem, CpuDevice(), &choice, name);
  EXPECT_NE(kernel, nullptr) << (choice.skipped.empty() ? "" : choice.skipped[0]);
  if (!kernel) return {};
  EXPECT_EQ(choice.kernel, name);
  const auto layout = kernel->weights_layout();
  EXPECT_TRUE(!layout || problem.lay_out_weights);
  const auto values = [&](int64_t n, uint64_t stream) {
    return rounded ? Widened(Rounded(RandomValues(n, stream))) : RandomValues(n, stream);
  };
  GuardedTensor source(problem.dtype, values(problem.source_shape().count(), 1));
  auto weights = values(problem.weights_shape().count(), 2);
  if (layout) {
    EXPECT_EQ(layout->plain_count(), problem.weights_shape().count());
    std::vector<float> stored = Poison(layout->count());
    layout->FromPlain(weights.data(), stored.data());
    weights.swap(stored);
  }
  const auto bias = values(problem.outputs, 3);
  const auto gradient = values(problem.destination_shape().count(), 4);
  GuardedTensor destination_gradient(problem.dtype, gradient);
  Results results;
  for (int pass = 0; pass < 2; ++pass) {
    GuardedTensor destination(problem.dtype, problem.sum ? gradient : Poison(gradient.size()));
    GuardedTensor source_gradient(problem.dtype, Poison(problem.source_shape().count()));
    Results fresh;
    fresh.weights_gradient = Poison(weights.size());
    fresh.bias_gradient = Poison(bias.size());
    const PoisonedWorkspace forward(kernel->forward_workspace()), backward(kernel->backward_workspace());
    kernel->Forward(source.data(), weights.data(), problem.bias ? bias.data() : nullptr, destination.data(),
                    forward.data());
    kernel->Backward(source.data(), weights.data(), destination_gradient.data(),
                     problem.source_gradient ? source_gradient.data() : nullptr,
                     problem.weights_gradient ? fresh.weights_gradient.data() : nullptr,
                     problem.bias_gradient ? fresh.bias_gradient.data() : nullptr, backward.data());
    fresh.destination = destination.Read();
    fresh.source_gradient = source_gradient.Read();
    std::swap(results, fresh);
  }
  if (layout) {
    std::vector<float> plain = Poison(layout->plain_count()), again(layout->count());
    layout->ToPlain(results.weights_gradient.data(), plain.data());
    layout->FromPlain(plain.data(), again.data());
    EXPECT_EQ(results.weights_gradient, again) << "padding is not zero";
    results.weights_gradient.swap(plain);
  }
  return results;
}

}  // namespace crema

#endif  // CREMA_TESTS_OPS_CONVOLUTION_RUNS_H_
