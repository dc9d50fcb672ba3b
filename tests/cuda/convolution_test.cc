// The GPU's convolutions against the CPU's loops, on groups wide enough for tiles and on others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "crema/error.h"
#include "device/gpu.h"
#include "ops/comparison.h"
#include "ops/convolution_case.h"
#include "ops/operations.h"

namespace crema {
namespace {

const ConvolutionCase kCases[] = {
    {"wide", 2, 20, 70, 1, {9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"wide groups", 2, 36, 68, 2, {7, 6}, {2, 3}, {2, 1}, {1, 2}, {1, 2}},
    {"pointwise", 3, 33, 17, 1, {5, 5}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {"many pixels", 5, 16, 16, 1, {15, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"many narrow pixels", 5, 3, 5, 1, {15, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise", 3, 40, 40, 40, {12, 9}, {3, 3}, {2, 1}, {1, 1}, {1, 1}},
    {"one axis", 2, 17, 18, 1, {23}, {5}, {2}, {2}, {1}},
    {"three axes", 2, 16, 16, 1, {4, 5, 3}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}},
    {"four axes", 2, 3, 4, 1, {3, 4, 3, 5}, {2, 2, 2, 3}, {1, 2, 1, 2}, {0, 1, 0, 1}, {1, 1, 2, 1}},
};

Gpu* OpenFirstGpu() {
  try {
    return &OpenGpu(0);
  } catch (const EnvironmentError&) {
    return nullptr;
  }
}

// Values on a device, kept there as problem.dtype where they are of images.
class DeviceArray {
 public:
  DeviceArray(Device& device, const std::vector<float>& values, DType dtype = DType::kF32)
      : device_(device), dtype_(dtype), count_(values.size()), memory_(device, std::max<size_t>(64, 4 * count_)) {
    if (dtype == DType::kBF16) {
      CopyIn<BFloat16>(values);
    } else if (dtype == DType::kF16) {
      CopyIn<Float16>(values);
    } else {
      CopyIn<float>(values);
    }
  }
  template <typename Number = void>
  Number* data() const {
    return reinterpret_cast<Number*>(memory_.data());
  }
  std::vector<float> Read() const {
    if (dtype_ == DType::kBF16) return CopyOut<BFloat16>();
    return dtype_ == DType::kF16 ? CopyOut<Float16>() : CopyOut<float>();
  }

 private:
  template <typename Number>
  void CopyIn(const std::vector<float>& values) {
    const std::vector<Number> rounded(values.begin(), values.end());
    device_.CopyIn(rounded.data(), memory_.data(), sizeof(Number) * count_);
  }
  template <typename Number>
  std::vector<float> CopyOut() const {
    std::vector<Number> rounded(count_);
    device_.CopyOut(memory_.data(), rounded.data(), sizeof(Number) * count_);
    return {rounded.begin(), rounded.end()};
  }

  Device& device_;
  DType dtype_;
  size_t count_;
  Buffer memory_;
};

struct Results {
  std::vector<float> destination, source_gradient, weights_gradient, bias_gradient;
};

// Values that bf16 and f16 hold, so that the CPU's f32 kernels start from the same numbers.
std::vector<float> Values(int64_t count, unsigned seed) { return Widened(Rounded(RandomValues(count, seed))); }

// `has_diverged`: the first number of the source is none.
Results RunKernel(const ConvolutionProblem& problem, Device& device, const char* name, bool has_diverged = false) {
  KernelChoice choice;
  const auto kernel = OperationsOf(device).MakeConvolution(problem, &choice, name);
  if (!kernel) return {};
  const auto gradient_values = Values(problem.destination_shape().count(), 4);
  std::vector<float> weight_values = Values(problem.weights_shape().count(), 2);
  const auto layout = kernel->weights_layout();
  if (layout) {
    std::vector<float> stored(layout->count());
    layout->FromPlain(weight_values.data(), stored.data());
    weight_values.swap(stored);
  }
  std::vector<float> source_values = Values(problem.source_shape().count(), 1);
  if (has_diverged) source_values[0] = std::numeric_limits<float>::quiet_NaN();
  const DeviceArray source(device, source_values, problem.dtype);
  const DeviceArray weights(device, weight_values), bias(device, Values(problem.outputs, 3));
  const DeviceArray gradient(device, gradient_values, problem.dtype);
  const DeviceArray destination(device, problem.sum ? gradient_values : Poison(gradient_values.size()), problem.dtype);
  const DeviceArray source_gradient(device, Poison(problem.source_shape().count()), problem.dtype);
  const DeviceArray weights_gradient(device, Poison(weight_values.size())),
      bias_gradient(device, Poison(problem.outputs));
  const DeviceArray forward(device, Poison(kernel->forward_workspace() / 4 + 1));
  const DeviceArray backward(device, Poison(kernel->backward_workspace() / 4 + 1));
  if (problem.prepared) kernel->Prepare(weights.data<float>(), problem.bias ? bias.data<float>() : nullptr);
  kernel->Forward(source.data(), weights.data<float>(), problem.bias ? bias.data<float>() : nullptr, destination.data(),
                  forward.data<std::byte>());
  if (!problem.prepared) {
    kernel->Backward(source.data(), weights.data<float>(), gradient.data(), source_gradient.data(),
                     weights_gradient.data<float>(), bias_gradient.data<float>(), backward.data<std::byte>());
  }
  Results results{destination.Read(), source_gradient.Read(), weights_gradient.Read(), bias_gradient.Read()};
  if (layout) {
    std::vector<float> plain(layout->plain_count());
    layout->ToPlain(results.weights_gradient.data(), plain.data());
    results.weights_gradient.swap(plain);
  }
  return results;
}

class GpuConvolution : public testing::TestWithParam<ConvolutionCase> {
 protected:
  void SetUp() override {
    gpu_ = OpenFirstGpu();
    if (!gpu_) GTEST_SKIP() << "no GPU";
  }

  // The CPU's loops take f32 only.
  void Compare(ConvolutionProblem problem, float tolerance) {
    ConvolutionProblem in_floats = problem;
    in_floats.dtype = DType::kF32;
    in_floats.lay_out_weights = false;
    const Results expected = RunKernel(in_floats, CpuDevice(), "reference");
    for (const char* name : {"cuDNN", "direct"}) {
      const Results actual = RunKernel(problem, *gpu_, name);
      if (actual.destination.empty()) {
        const bool may_refuse = emulated() || problem.dtype != DType::kF32 || problem.input.size() > 3;
        EXPECT_TRUE(may_refuse && std::string_view(name) == "cuDNN") << name << " does not take it";
        continue;
      }
      const std::string kernel = name;
      ExpectClose(expected.destination, actual.destination, tolerance, kernel + " destination");
      if (problem.prepared) continue;
      ExpectClose(expected.source_gradient, actual.source_gradient, tolerance, kernel + " source gradient");
      ExpectClose(expected.weights_gradient, actual.weights_gradient, tolerance, kernel + " weights gradient");
      if (problem.bias) ExpectClose(expected.bias_gradient, actual.bias_gradient, tolerance, kernel + " bias gradient");
    }
  }

  bool emulated() const { return gpu_->name().find("Emulated") != std::string::npos; }

  ConvolutionProblem Problem() const {
    ConvolutionProblem problem = ProblemOf(GetParam());
    problem.source_gradient = problem.weights_gradient = problem.bias_gradient = true;
    return problem;
  }

  Gpu* gpu_ = nullptr;
};

TEST_P(GpuConvolution, EqualsTheCpus) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    ConvolutionProblem problem = Problem();
    problem.layout = layout;
    Compare(problem, 2e-5f);
    problem.lay_out_weights = true;
    problem.bias = problem.bias_gradient = false;
    Compare(problem, 2e-5f);
  }
}

TEST_P(GpuConvolution, TakesHalfPrecision) {
  if (GetParam().input.size() > 3) return;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(Name(dtype));
    ConvolutionProblem problem = Problem();
    problem.layout = Layout::kChannelsLast;
    problem.dtype = dtype;
    const float tolerance = dtype == DType::kBF16 ? 2e-2f : 3e-3f;
    Compare(problem, tolerance);
    problem.activation = {Activation::Kind::kTanh};
    problem.sum = true;
    Compare(problem, tolerance);
  }
}

TEST_P(GpuConvolution, EndsWithSumsAndActivations) {
  using Kind = Activation::Kind;
  for (const Activation& activation :
       {Activation{}, Activation{Kind::kRelu}, Activation{Kind::kRelu, 0.25f}, Activation{Kind::kRelu6},
        Activation{Kind::kSigmoid}, Activation{Kind::kTanh}, Activation{Kind::kSwish, 1.0f},
        Activation{Kind::kSwish, 1.5f}, Activation{Kind::kHardSwish}, Activation{Kind::kMish},
        Activation{Kind::kElu, 1.5f}}) {
    ConvolutionProblem problem = Problem();
    problem.activation = activation;
    problem.prepared = true;
    problem.layout = Layout::kChannelsLast;
    Compare(problem, 4e-5f);
    problem.sum = true;
    Compare(problem, 4e-5f);
  }
}

// Activations must not hide that a net has diverged.
TEST_P(GpuConvolution, KeepsNaNs) {
  using Kind = Activation::Kind;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    if (dtype != DType::kF32 && GetParam().input.size() > 3) continue;
    for (const Activation& activation : {Activation{}, Activation{Kind::kRelu}, Activation{Kind::kRelu6}}) {
      ConvolutionProblem problem = Problem();
      problem.layout = Layout::kChannelsLast;
      problem.dtype = dtype;
      problem.activation = activation;
      problem.prepared = true;
      for (const char* name : {"cuDNN", "direct"}) {
        const std::vector<float> results = RunKernel(problem, *gpu_, name, true).destination;
        if (results.empty()) continue;
        EXPECT_TRUE(std::any_of(results.begin(), results.end(), [](float x) { return std::isnan(x); }))
            << name << ", " << Name(dtype) << ", activation " << static_cast<int>(activation.kind);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GpuConvolution, testing::ValuesIn(kCases), [](const auto& info) {
  std::string name;
  for (const char* c = info.param.name; *c; ++c) name += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_';
  return name;
});

}  // namespace
}  // namespace crema
