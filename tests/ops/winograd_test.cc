#include <gtest/gtest.h>
#include <omp.h>

#include <string>
#include <utility>
#include <vector>

#include "comparison.h"
#include "convolution_runs.h"
#include "near.h"
#include "ops/convolution/winograd_passes.h"

namespace crema {
namespace {

// F(m x m, r x r), and how far from exact it may be.
struct Form {
  int m, r;
  float tolerance;
};
const Form kForms[] = {{2, 3, 2e-6f}, {4, 3, 5e-6f}, {2, 5, 5e-6f}};

int64_t OutputIndex(const WinogradProblem& p, int64_t image, int64_t y, int64_t x, int64_t channel) {
  return ((image * p.destination[0] + y) * p.destination[1] + x) * p.groups * p.outputs + channel;
}

// Calls use(source index, taps index, destination index) for each product of the definition. Taps: r x r x channels x
// all groups' outputs.
template <typename Use>
void ForEachProduct(const WinogradProblem& p, int r, const Use& use) {
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t y = 0; y < p.destination[0]; ++y) {
      for (int64_t x = 0; x < p.destination[1]; ++x) {
        for (int i = 0; i < r; ++i) {
          for (int j = 0; j < r; ++j) {
            const int64_t row = y + i - p.pad[0], column = x + j - p.pad[1];
            if (row < 0 || row >= p.source[0] || column < 0 || column >= p.source[1]) continue;
            for (int64_t group = 0; group < p.groups; ++group) {
              for (int64_t c = 0; c < p.channels; ++c) {
                for (int64_t k = group * p.outputs; k < (group + 1) * p.outputs; ++k) {
                  use(((n * p.source[0] + row) * p.source[1] + column) * p.groups * p.channels + group * p.channels + c,
                      ((i * r + j) * p.channels + c) * p.groups * p.outputs + k, OutputIndex(p, n, y, x, k));
                }
              }
            }
          }
        }
      }
    }
  }
}

WinogradProblem Drawn(uint64_t stream, int r) {
  const RandomStream random(3, stream);
  uint64_t next = 0;
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.Uniform(next++) * static_cast<float>(most - least + 1));
  };
  WinogradProblem p{draw(1, 3), draw(0, 2) ? 1 : draw(2, 3), draw(1, 37), draw(1, 37), {}, {}, {}};
  for (int axis = 0; axis < 2; ++axis) {
    p.pad[axis] = draw(0, r - 1);
    p.source[axis] = std::max<int64_t>(draw(1, 15), r - 2 * p.pad[axis]);
    p.destination[axis] = p.source[axis] + 2 * p.pad[axis] - r + 1;
  }
  return p;
}

std::string TextOf(const WinogradProblem& p, const Form& form) {
  const auto text = [](const auto& value) { return testing::PrintToString(value); };
  return "F(" + text(form.m) + ", " + text(form.r) + "), " + text(p.batch) + " images of " + text(p.source) + ", " +
         text(p.groups) + " groups of " + text(p.channels) + " to " + text(p.outputs) + ", pad " + text(p.pad);
}

struct Passes {
  std::vector<float> destination, source_gradient, taps_gradient;
};

struct Data {
  Data(const WinogradProblem& p, int r)
      : source(RandomValues(p.batch * p.source[0] * p.source[1] * p.groups * p.channels, 1)),
        taps(RandomValues(r * r * p.channels * p.groups * p.outputs, 2)),
        bias(RandomValues(p.groups * p.outputs, 3)),
        gradient(RandomValues(OutputIndex(p, p.batch, 0, 0, 0), 4)) {}
  std::vector<float> source, taps, bias, gradient;
};

Passes RunPasses(const WinogradProblem& p, const Form& form, const Data& data) {
  const WinogradTransforms& transforms = WinogradTransformsFor(form.m, form.r);
  const WinogradFilter filter(p, transforms);
  const WinogradFilter back({p.batch,
                             p.groups,
                             p.outputs,
                             p.channels,
                             p.destination,
                             p.source,
                             {form.r - 1 - p.pad[0], form.r - 1 - p.pad[1]}},
                            transforms);
  const WinogradKernelGradient to_taps(p, transforms);
  const int64_t outputs = p.groups * p.outputs;
  const WinogradTaps lie{.output = 1, .channel = outputs, .tap = p.channels * outputs};
  const auto bytes = [](int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); };
  const auto floats = [](const PoisonedWorkspace& workspace) { return reinterpret_cast<float*>(workspace.data()); };
  Passes made{Poison(data.gradient.size()), Poison(data.source.size()), Poison(data.taps.size())};
  {
    const PoisonedWorkspace packed(bytes(filter.packed_floats())), workspace(bytes(filter.workspace_floats()));
    filter.Pack(data.taps.data(), lie, floats(packed));
    filter.Run(data.source.data(), floats(packed), data.bias.data(), false, {}, made.destination.data(),
               floats(workspace));
  }
  {
    const PoisonedWorkspace packed(bytes(back.packed_floats())), workspace(bytes(back.workspace_floats()));
    back.PackMirrored(data.taps.data(), lie, floats(packed));
    back.Run(data.gradient.data(), floats(packed), nullptr, false, {}, made.source_gradient.data(), floats(workspace));
  }
  const PoisonedWorkspace workspace(bytes(to_taps.workspace_floats()));
  to_taps.Run(data.source.data(), data.gradient.data(), made.taps_gradient.data(), lie, floats(workspace));
  return made;
}

TEST(Winograd, EqualsTheDefinition) {
  for (const Form& form : kForms) {
    for (uint64_t stream = 0; stream < 15; ++stream) {
      const WinogradProblem p = Drawn(stream, form.r);
      SCOPED_TRACE(TextOf(p, form));
      const Data data(p, form.r);
      std::vector<double> y(data.gradient.size()), dx(data.source.size()), dw(data.taps.size());
      for (size_t i = 0; i < y.size(); ++i) y[i] = data.bias[i % data.bias.size()];
      ForEachProduct(p, form.r, [&](int64_t source, int64_t tap, int64_t destination) {
        y[destination] += static_cast<double>(data.source[source]) * data.taps[tap];
        dx[source] += static_cast<double>(data.gradient[destination]) * data.taps[tap];
        dw[tap] += static_cast<double>(data.source[source]) * data.gradient[destination];
      });
      const auto floats = [](const std::vector<double>& values) {
        return std::vector<float>(values.begin(), values.end());
      };
      const Passes made = RunPasses(p, form, data);
      ExpectClose(floats(y), made.destination, form.tolerance, "destination");
      ExpectClose(floats(dx), made.source_gradient, form.tolerance, "source gradient");
      ExpectClose(floats(dw), made.taps_gradient, form.tolerance, "taps' gradient");
    }
  }
}

TEST(Winograd, ThreadsDoNotChangeBits) {
  const int threads = omp_get_max_threads();
  for (const Form& form : kForms) {
    for (const WinogradProblem& p : {WinogradProblem{1, 1, 20, 18, {13, 9}, {13, 9}, {form.r / 2, form.r / 2}},
                                     WinogradProblem{5, 2, 34, 50, {30, 31}, {30, 31}, {form.r / 2, form.r / 2}}}) {
      SCOPED_TRACE(TextOf(p, form));
      const Data data(p, form.r);
      omp_set_num_threads(1);
      const Passes alone = RunPasses(p, form, data);
      for (const int several : {2, 3, 7}) {
        omp_set_num_threads(several);
        const Passes together = RunPasses(p, form, data);
        EXPECT_EQ(alone.destination, together.destination);
        EXPECT_EQ(alone.source_gradient, together.source_gradient);
        EXPECT_EQ(alone.taps_gradient, together.taps_gradient);
      }
    }
  }
  omp_set_num_threads(threads);
}

// Sizes at which it is chosen.
ConvolutionProblem Chosen(int64_t kernel, int64_t groups) {
  ConvolutionProblem p{.batch = 3,
                       .channels = 48 * groups,
                       .outputs = 50 * groups,
                       .groups = groups,
                       .input = {18, 18},
                       .kernel = {kernel, kernel},
                       .stride = {1, 1},
                       .dilation = {1, 1},
                       .pad = {kernel / 2, 0},
                       .layout = Layout::kChannelsLast};
  p.source_gradient = p.weights_gradient = p.bias_gradient = true;
  return p;
}

void ExpectSame(const Results& expected, const Results& actual, float tolerance) {
  ExpectClose(expected.destination, actual.destination, tolerance, "destination");
  ExpectClose(expected.source_gradient, actual.source_gradient, tolerance, "source gradient");
  ExpectClose(expected.weights_gradient, actual.weights_gradient, tolerance, "weights gradient");
  ExpectClose(expected.bias_gradient, actual.bias_gradient, tolerance, "bias gradient");
}

TEST(WinogradConvolution, EqualsReference) {
  for (auto [kernel, groups] : {std::pair{3, 2}, {5, 1}}) {
    ConvolutionProblem problem = Chosen(kernel, groups);
    KernelChoice choice;
    MakeConvolution(problem, CpuDevice(), &choice);
    EXPECT_EQ(choice.kernel, "Winograd");
    const Results expected = RunKernel(problem, "reference");
    for (const bool laid_out : {false, true}) {
      problem.lay_out_weights = laid_out;
      ExpectSame(expected, RunKernel(problem, "Winograd"), 1e-5f);
    }
  }
}

TEST(WinogradConvolution, EndsWithSumAndActivation) {
  using Kind = Activation::Kind;
  for (const bool sum : {false, true}) {
    ConvolutionProblem problem = Chosen(3, 1);
    problem.source_gradient = problem.weights_gradient = problem.bias_gradient = false;
    problem.bias = !sum;
    problem.sum = sum;
    const std::vector<float> plain = RunKernel(problem, "reference").destination;
    for (const Activation& activation : {Activation{}, Activation{Kind::kRelu}, Activation{Kind::kRelu, 0.25f},
                                         Activation{Kind::kRelu6}, Activation{Kind::kTanh}}) {
      problem.activation = activation;
      std::vector<float> expected = plain;
      ActivateFloats(activation, static_cast<int64_t>(expected.size()), expected.data(), expected.data());
      ExpectClose(expected, RunKernel(problem, "Winograd").destination, 4e-5f, "destination");
    }
  }
}

TEST(WinogradConvolution, ReadsWhatWasPrepared) {
  for (const bool bias : {true, false}) {
    ConvolutionProblem problem = Chosen(3, 2);
    problem.bias = bias;
    problem.source_gradient = problem.weights_gradient = problem.bias_gradient = false;
    const std::vector<float> expected = RunKernel(problem, "reference").destination;
    problem.prepared = true;
    const auto kernel = MakeConvolution(problem, CpuDevice(), nullptr, "Winograd");
    ASSERT_NE(kernel, nullptr);
    const auto source = RandomValues(problem.source_shape().count(), 1);
    for (const uint64_t stream : {9, 2}) {  // the second time with the weights of RunKernel
      const auto weights = RandomValues(problem.weights_shape().count(), stream);
      const auto biases = RandomValues(problem.outputs, stream + 1);
      kernel->Prepare(weights.data(), bias ? biases.data() : nullptr);
    }
    std::vector<float> destination = Poison(expected.size());
    const PoisonedWorkspace workspace(kernel->forward_workspace());
    kernel->Forward(source.data(), nullptr, nullptr, destination.data(), workspace.data());
    ExpectClose(expected, destination, 1e-5f, "destination");
  }
}

TEST(WinogradConvolution, IsLeftWhereItDoesNotPay) {
  const auto reason = [](const ConvolutionProblem& problem) {
    KernelChoice choice;
    EXPECT_EQ(MakeConvolution(problem, CpuDevice(), &choice, "Winograd"), nullptr);
    return choice.skipped.empty() ? "" : choice.skipped[0];
  };
  ConvolutionProblem problem = Chosen(3, 1);
  problem.channels = 3;
  EXPECT_EQ(reason(problem), "Winograd: is slower for these sizes");
  problem = Chosen(3, 1);
  problem.stride = {2, 1};
  EXPECT_EQ(reason(problem), "Winograd: takes no stride and no dilation");
  problem = Chosen(3, 1);
  problem.pad = {3, 0};
  EXPECT_EQ(reason(problem), "Winograd: takes less padding than the kernel is wide");
  problem = Chosen(3, 1);
  problem.layout = Layout::kPlain;
  EXPECT_EQ(reason(problem), "Winograd: takes f32 with channels last only");
  problem = Chosen(3, 1);
  problem.kernel = {1, 1};
  EXPECT_EQ(reason(problem), "Winograd: takes kernels of 3 x 3 and 5 x 5 only");
}

}  // namespace
}  // namespace crema
