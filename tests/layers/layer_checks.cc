#include "layers/layer_checks.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "layers/layer_harness.h"
#include "layers/outcome.h"
#include "near.h"
#include "ops/arrays/bfloat16.h"

namespace crema::testing {

namespace {

// Compares an analytic gradient with differences of the weighted sum of the tops, at some elements of `input`.
void CheckDifferences(const LayerCase& test, LayerInstance& layer, const Tensor& input,
                      const std::vector<float>& gradient, const Arrays& weights, const std::string& what) {
  const auto evaluate = [&] {
    layer.Forward();
    double sum = 0;
    for (int t = 0; t < layer.setup().tops(); ++t) {
      const std::vector<float> top = layer.Top(t);
      for (size_t e = 0; e < top.size(); ++e) {
        if (weights[t][e] != 0) sum += static_cast<double>(weights[t][e]) * top[e];
      }
    }
    return sum;
  };
  const int64_t samples = input.count() > 4096 ? 8 : 64;
  const int64_t stride = std::max<int64_t>(1, input.count() / samples);
  const double allowed = test.gradient_tolerance() * std::max(1e-3, LargestOf(gradient));
  for (int64_t i = 0; i < input.count(); i += stride) {
    const float original = input.f32()[i];
    const auto at = [&](double distance) {
      input.f32()[i] = static_cast<float>(original + distance);
      const double moved = static_cast<double>(input.f32()[i]) - original;
      return std::pair<double, double>(evaluate(), moved);
    };
    // Four points: the error falls with the fourth power of the step.
    const double h = test.gradient_step();
    const auto [near_up, up] = at(h);
    const auto [near_down, down] = at(-h);
    const auto [far_up, up2] = at(2 * h);
    const auto [far_down, down2] = at(-2 * h);
    input.f32()[i] = original;
    const double near = (near_up - near_down) / (up - down), far = (far_up - far_down) / (up2 - down2);
    const double difference = (4 * near - far) / 3;
    ASSERT_LE(std::fabs(difference - gradient[static_cast<size_t>(i)]), allowed)
        << "gradient of " << what << ", element " << i << ": Backward says " << gradient[static_cast<size_t>(i)]
        << ", differences say " << difference;
  }
}

void CheckExpectedGradients(const ::google::protobuf::RepeatedPtrField<CaseTensor>& expected, const Arrays& actual,
                            double tolerance, const std::string& what) {
  for (int i = 0; i < expected.size(); ++i) {
    if (expected.Get(i).value_size() == 0) continue;
    ASSERT_LT(static_cast<size_t>(i), actual.size()) << what;
    const Shape flat{static_cast<int64_t>(actual[i].size())};
    ExpectClose(actual[i], Values(expected.Get(i), flat, 0), tolerance, 1.0, what + " " + std::to_string(i));
  }
}

void CheckShapes(const LayerCase& test, const LayerSetup& setup) {
  if (test.expect_top_size() > 0) {
    ASSERT_EQ(test.expect_top_size(), setup.tops());
  }
  for (int i = 0; i < test.expect_top_size(); ++i) {
    EXPECT_EQ(setup.top_specs()[i].shape.ToString(), ShapeOf(test.expect_top(i)).ToString()) << "shape of top " << i;
  }
  if (test.has_expect_in_place()) {
    EXPECT_EQ(setup.in_place(), test.expect_in_place());
  }
  if (test.has_expect_view()) {
    EXPECT_EQ(setup.is_view(), test.expect_view());
  }
  if (test.has_expect_warning()) {
    const bool found = std::any_of(setup.warnings().begin(), setup.warnings().end(), [&](const Diagnostic& warning) {
      return warning.message.find(test.expect_warning()) != std::string::npos;
    });
    EXPECT_TRUE(found) << "no warning says: " << test.expect_warning();
  }
}

void CheckError(const LayerCase& test, const Placing& placing = {}) {
  try {
    LayerInstance layer(test, nullptr, placing);
    layer.FillInputs();
    layer.Forward();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(test.expect_error()), std::string::npos) << error.what();
    EXPECT_FALSE(test.has_expect_item()) << "a UserError names no item";
    return;
  } catch (const BadItem& error) {
    EXPECT_NE(std::string(error.what()).find(test.expect_error()), std::string::npos) << error.what();
    if (test.has_expect_item()) {
      EXPECT_EQ(error.item, test.expect_item());
    }
    return;
  }
  FAIL() << "accepted, but expected: " << test.expect_error();
}

class Threads {
 public:
  explicit Threads(int wanted) : before_(omp_get_max_threads()) { omp_set_num_threads(wanted); }
  ~Threads() { omp_set_num_threads(before_); }

 private:
  int before_;
};

// Of the largest element, between images in bf16 and in f32. Each number that bf16 holds is off by up to 2^-9 of
// itself; layers round a few times on the way (the tops that a gradient is made from, sums of several bottoms), and
// products of rounded weights once more. Ten such errors in a row: a wrong element is off by far more.
constexpr double kBFloat16Tolerance = 2e-2;
// Likewise; f16 is off by up to 2^-12.
constexpr double kFloat16Tolerance = 2.5e-3;

// What may differ where other kernels, or other parts of one, come into play.
double KernelTolerance(const Placing& placing, double f32) {
  return placing.numbers == DType::kBF16  ? kBFloat16Tolerance
         : placing.numbers == DType::kF16 ? kFloat16Tolerance
                                          : f32;
}

void CheckInPlace(const LayerCase& test, const Wanted& everything, Placing placing, const Outcome& reference) {
  placing.in_place = true;
  // The compiler overwrites bottom 0 only where the backward pass does not read it.
  const LayerInstance probe(test, Any(everything) ? &everything : nullptr, placing);
  const bool backward = Any(everything) && probe.CanBackwardInPlace();
  const Outcome in_place = RunOnce(test, backward ? &everything : nullptr, placing);
  EXPECT_EQ(in_place.problem, "");
  ExpectSame(in_place.tops, reference.tops, 0, "in place: top");
  if (!backward) return;
  ExpectSame(in_place.bottom_gradients, reference.bottom_gradients, 0, "in place: gradient of bottom");
  ExpectSame(in_place.param_gradients, reference.param_gradients, 0, "in place: gradient of parameter");
}

// Each gradient asked for by itself is what it is among all of them.
void CheckSingleGradients(const LayerCase& test, const Wanted& everything, const Placing& placing,
                          const Outcome& reference) {
  const size_t bottoms = everything.bottoms.size();
  for (size_t i = 0; i < bottoms + everything.params.size(); ++i) {
    const bool of_bottom = i < bottoms;
    if (!(of_bottom ? everything.bottoms[i] : everything.params[i - bottoms])) continue;
    Wanted one{std::vector<bool>(bottoms, false), std::vector<bool>(everything.params.size(), false)};
    (of_bottom ? one.bottoms[i] : one.params[i - bottoms]) = true;
    const Outcome outcome = RunOnce(test, &one, placing);
    EXPECT_EQ(outcome.problem, "");
    const auto& actual = of_bottom ? outcome.bottom_gradients[i] : outcome.param_gradients[i - bottoms];
    const auto& expected = of_bottom ? reference.bottom_gradients[i] : reference.param_gradients[i - bottoms];
    ExpectClose(actual, expected, KernelTolerance(placing, 1e-5), 1e-3,
                "the gradient asked for alone of input " + std::to_string(i));
  }
}

// The outcome depends neither on what else is asked for, nor on time, threads or overwriting. `everything` wants
// nothing where there is no backward pass.
void CheckWaysToRun(const LayerCase& test, const LayerSetup& setup, const Wanted& everything, const Placing& placing,
                    const Outcome& reference) {
  const Wanted* wanted = Any(everything) ? &everything : nullptr;
  {
    const Outcome forward_only = RunOnce(test, nullptr, placing);
    EXPECT_EQ(forward_only.problem, "");
    // Another kernel may be the faster one then.
    ExpectSame(forward_only.tops, reference.tops, KernelTolerance(placing, 1e-5), "without a backward pass: top");
  }
  ExpectSame(RunOnce(test, wanted, placing), reference, 0, "run again");
  {
    const Threads one(1);
    const Outcome single = RunOnce(test, wanted, placing);
    omp_set_num_threads(2);
    ExpectSame(RunOnce(test, wanted, placing), single, test.thread_tolerance(), "two threads against one");
  }
  if (setup.in_place()) CheckInPlace(test, everything, placing, reference);
  CheckSingleGradients(test, everything, placing, reference);
}

// Whether the layer draws a random number for each element, by its place in memory: then only equal memory makes equal
// memory. It treats each element alike, and makes others in another pass. One that draws for items or windows promises
// the same numbers in every layout.
bool DrawsByElement(const LayerCase& test, const LayerSetup& setup, const Outcome& reference) {
  if (!setup.in_place()) return false;
  LayerCase later = test;
  later.set_pass(test.pass() + 1);
  return RunOnce(later, nullptr).tops != reference.tops;
}

bool HasImage(const LayerCase& test, const LayerSetup& setup) {
  const auto& tops = setup.top_specs();
  return std::any_of(tops.begin(), tops.end(), [](const TensorSpec& top) { return IsImage(top.shape); }) ||
         std::any_of(test.bottom().begin(), test.bottom().end(),
                     [](const CaseTensor& bottom) { return IsImage(ShapeOf(bottom)); });
}

// The same numbers come of images with channels last, where the layer says that it takes them.
void CheckChannelsLast(const LayerCase& test, const LayerSetup& setup, const Wanted& everything,
                       const Outcome& reference) {
  if (setup.channels_last() == LayerSetup::ChannelsLast::kNever || !HasImage(test, setup)) return;
  const ::testing::ScopedTrace trace(__FILE__, __LINE__, "with channels last");
  const Placing placing{.images = Layout::kChannelsLast, .by_memory = DrawsByElement(test, setup, reference)};
  const Outcome outcome = RunOnce(test, Any(everything) ? &everything : nullptr, placing);
  EXPECT_EQ(outcome.problem, "");
  ExpectSame(outcome, reference, test.tolerance(), "channels last against plain");
  if (::testing::Test::HasFatalFailure()) return;
  CheckWaysToRun(test, setup, everything, placing, outcome);
}

// Nearly the same numbers come of images in bf16, where the layer says that it takes them.
void CheckBFloat16(const LayerCase& test, const LayerSetup& setup, const Wanted& everything, const Outcome& reference) {
  if (!setup.half_precision() || !HasImage(test, setup)) return;
  ASSERT_NE(setup.channels_last(), LayerSetup::ChannelsLast::kNever) << "bf16 images lie channels last";
  if (setup.channels_last() == LayerSetup::ChannelsLast::kPreferred && !ComputesBFloat16(CpuDevice())) {
    std::cout << "not run in bf16: products of bf16 need AVX-512 BF16, which this CPU lacks\n";
    return;
  }
  const ::testing::ScopedTrace trace(__FILE__, __LINE__, "in bf16");
  const Wanted* wanted = Any(everything) ? &everything : nullptr;
  const Placing placing{.images = Layout::kChannelsLast,
                        .numbers = DType::kBF16,
                        .by_memory = DrawsByElement(test, setup, reference),
                        .rounded = DType::kBF16};
  const Outcome rounded = RunOnce(test, wanted, {.rounded = DType::kBF16}), outcome = RunOnce(test, wanted, placing);
  EXPECT_EQ(outcome.problem, "");
  ExpectSame(outcome, rounded, kBFloat16Tolerance, "bf16 against f32");
  if (::testing::Test::HasFatalFailure()) return;
  CheckWaysToRun(test, setup, everything, placing, outcome);
}

void CheckView(const LayerCase& test, const LayerSetup& setup) {
  const Shape bottom = ShapeOf(test.bottom(0));
  for (const TensorSpec& top : setup.top_specs()) {
    EXPECT_EQ(top.shape.count(), bottom.count()) << "a view keeps the number of elements";
    EXPECT_EQ(top.dtype, DType::kF32);
    if (setup.channels_last() != LayerSetup::ChannelsLast::kNever) {
      EXPECT_EQ(top.shape.ToString(), bottom.ToString()) << "a view of an image with channels last keeps its shape";
    }
  }
}

// Of the largest element, between the CPU and a GPU, which add in another order.
constexpr double kGpuTolerance = 1e-4;

}  // namespace

void CheckCase(const LayerCase& test) {
  const ExpectedNans nans(test);
  if (test.has_expect_error()) return CheckError(test);
  LayerInstance plain(test, nullptr, {});
  EXPECT_EQ(plain.MemoryProblem(), "");
  CheckShapes(test, plain.setup());
  if (plain.setup().is_view()) return CheckView(test, plain.setup());
  if (test.shapes_only() || ::testing::Test::HasFatalFailure()) return;

  const Wanted everything = plain.setup().is_differentiable() ? EverythingWanted(plain, test) : Wanted{};
  const bool backward = Any(everything);
  const Wanted* wanted = backward ? &everything : nullptr;
  const Outcome reference = RunOnce(test, wanted);
  EXPECT_EQ(reference.problem, "");
  for (int i = 0; i < test.expect_top_size(); ++i) {
    if (test.expect_top(i).value_size() == 0) continue;
    const std::vector<float> expected = Values(test.expect_top(i), ShapeOf(test.expect_top(i)), 0);
    ExpectClose(reference.tops[i], expected, test.tolerance(), 1.0, "top " + std::to_string(i));
  }
  CheckWaysToRun(test, plain.setup(), everything, {}, reference);
  CheckChannelsLast(test, plain.setup(), everything, reference);
  CheckBFloat16(test, plain.setup(), everything, reference);
  if (!backward) return;
  if (test.expect_bottom_gradient_size() + test.expect_param_gradient_size() > 0) {
    const Outcome ones = RunOnce(test, wanted, {}, 1.0f);
    CheckExpectedGradients(test.expect_bottom_gradient(), ones.bottom_gradients, test.tolerance(),
                           "gradient of bottom");
    CheckExpectedGradients(test.expect_param_gradient(), ones.param_gradients, test.tolerance(),
                           "gradient of parameter");
  }
  if (!test.check_gradient()) return;
  const Arrays weights = TopWeights(plain, test, 0);
  plain.FillInputs();
  for (size_t i = 0; i < everything.bottoms.size(); ++i) {
    if (!everything.bottoms[i]) continue;
    CheckDifferences(test, plain, plain.Bottom(static_cast<int>(i)), reference.bottom_gradients[i], weights,
                     "bottom " + std::to_string(i));
  }
  for (size_t i = 0; i < everything.params.size(); ++i) {
    if (!everything.params[i]) continue;
    CheckDifferences(test, plain, plain.Param(static_cast<int>(i)), reference.param_gradients[i], weights,
                     "parameter " + std::to_string(i));
  }
}

void CheckOnGpu(const LayerCase& test, Gpu& gpu) {
  const ExpectedNans nans(test);
  if (test.has_expect_error()) return CheckError(test, {.device = &gpu});
  LayerInstance plain(test, nullptr, {});
  const LayerSetup& setup = plain.setup();
  if (setup.is_view() || setup.is_source() || test.shapes_only()) return;
  const Wanted everything = setup.is_differentiable() ? EverythingWanted(plain, test) : Wanted{};
  const Wanted* wanted = Any(everything) ? &everything : nullptr;
  const Outcome reference = RunOnce(test, wanted);
  const auto check = [&](const Placing& placing, const Outcome& expected, double tolerance) {
    const Outcome outcome = RunOnce(test, wanted, placing);
    EXPECT_EQ(outcome.problem, "");
    ExpectSame(outcome, expected, std::max(tolerance, double{test.tolerance()}), "GPU against CPU");
    if (::testing::Test::HasFatalFailure()) return;
    CheckWaysToRun(test, setup, everything, placing, outcome);
  };
  check({.device = &gpu}, reference, kGpuTolerance);
  if (setup.channels_last() == LayerSetup::ChannelsLast::kNever || !HasImage(test, setup)) return;
  const bool draws = DrawsByElement(test, setup, reference);
  {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "with channels last");
    check({.images = Layout::kChannelsLast, .by_memory = draws, .device = &gpu}, reference, kGpuTolerance);
  }
  for (const DType type : {DType::kBF16, DType::kF16}) {
    const bool computes = type == DType::kBF16 ? gpu.ComputesBFloat16() : gpu.ComputesFloat16();
    if (!setup.half_precision() || !computes || ::testing::Test::HasFatalFailure()) continue;
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, std::string("in ") + Name(type));
    check({.images = Layout::kChannelsLast, .numbers = type, .by_memory = draws, .rounded = type, .device = &gpu},
          RunOnce(test, wanted, {.rounded = type}), type == DType::kBF16 ? kBFloat16Tolerance : kFloat16Tolerance);
  }
}

}  // namespace crema::testing
