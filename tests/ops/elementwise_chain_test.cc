#include "ops/activations/elementwise_chain.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "comparison.h"
#include "ops/activations/dropout.h"
#include "ops/arrays/elementwise.h"

namespace crema {
namespace {

using Kind = Activation::Kind;

ChainLink Act(Kind kind, float parameter = 0, float second = 0) { return {.activation = {kind, parameter, second}}; }
ChainLink Drop(float ratio) { return {.dropout_ratio = ratio}; }

struct Case {
  const char* name;
  std::vector<ChainLink> links;
  bool reads_output, reads_input, keeps_masks;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

const Case kCases[] = {
    {"relu_dropout", {Act(Kind::kRelu), Drop(0.5f)}, true, false, false},
    {"dropout_relu", {Drop(0.3f), Act(Kind::kRelu)}, true, false, false},
    {"leaky_dropout", {Act(Kind::kRelu, 0.1f), Drop(0.5f)}, true, false, true},
    {"negative_slope", {Act(Kind::kRelu, -0.5f), Act(Kind::kTanh)}, false, true, false},
    {"dropout_alone", {Drop(0.4f)}, false, false, true},
    {"two_dropouts", {Drop(0.4f), Drop(0.2f)}, false, false, true},
    {"relu_tanh", {Act(Kind::kRelu), Act(Kind::kTanh)}, true, false, false},
    {"tanh_dropout", {Act(Kind::kTanh), Drop(0.5f)}, false, true, true},
    {"sigmoid_tanh", {Act(Kind::kSigmoid), Act(Kind::kTanh)}, false, true, false},
    {"relu_sigmoid", {Act(Kind::kRelu), Act(Kind::kSigmoid)}, false, true, false},
    {"swish", {Act(Kind::kSwish, 1.5f)}, false, true, false},
    {"hard_swish", {Act(Kind::kHardSwish)}, false, true, false},
    {"mish", {Act(Kind::kMish)}, false, true, false},
    {"relu_mish", {Act(Kind::kRelu, 0.1f), Act(Kind::kMish)}, false, true, false},
    {"elu", {Act(Kind::kElu, 1.5f)}, true, false, false},
    {"relu_elu", {Act(Kind::kRelu), Act(Kind::kElu, 0.5f)}, true, false, false},
    {"dropout_elu", {Drop(0.4f), Act(Kind::kElu, 0.5f)}, true, false, true},
    {"elu_dropout", {Act(Kind::kElu, 0.5f), Drop(0.4f)}, false, true, true},
    {"line", {Act(Kind::kLinear, -0.5f, 2)}, true, false, false},
    {"constant", {Act(Kind::kLinear, 0, 2)}, true, false, false},
    {"absolute_elu", {Act(Kind::kAbs), Act(Kind::kElu, 1)}, false, true, false},
    {"square_clip", {Act(Kind::kSquare, 0.5f, 1), Act(Kind::kClip, 0.25f, 1.5f)}, false, true, false},
    {"line_dropout_tanh", {Act(Kind::kLinear, 2, 1), Drop(0.2f), Act(Kind::kTanh)}, false, true, true},
    {"all",
     {Act(Kind::kTanh), Drop(0.2f), Act(Kind::kSwish, 2), Act(Kind::kRelu, 0.2f), Act(Kind::kSigmoid), Drop(0.3f),
      Act(Kind::kRelu6), Act(Kind::kRelu)},
     false,
     true,
     true},
};

// Each link by itself, in double, one element after the other.
double Value(const Activation& a, double x) {
  switch (a.kind) {
    case Kind::kNone:
      return x;
    case Kind::kRelu:
      return x < 0 ? a.parameter * x : x;
    case Kind::kRelu6:
      return std::min(std::max(x, 0.0), 6.0);
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kSwish:
      return x / (1 + std::exp(-a.parameter * x));
    case Kind::kHardSwish:
      return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
    case Kind::kMish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case Kind::kElu:
      return x < 0 ? a.parameter * std::expm1(x) : x;
    case Kind::kAbs:
      return std::fabs(x);
    case Kind::kLinear:
      return a.parameter * x + a.second;
    case Kind::kSquare:
      return std::pow(a.parameter * x + a.second, 2);
    case Kind::kClip:
      return std::min(std::max(x, double{a.parameter}), double{a.second});
    default:
      return 0;  // no link of chains
  }
}

double Slope(const Activation& a, double x) {
  constexpr double kStep = 1e-5;
  if (a.kind == Kind::kRelu) return x > 0 ? 1 : a.parameter;
  if (a.kind == Kind::kRelu6) return x > 0 && x < 6 ? 1 : 0;
  if (a.kind == Kind::kElu) return x > 0 ? 1 : a.parameter * std::exp(x);
  if (a.kind == Kind::kAbs) return x > 0 ? 1 : -1;
  if (a.kind == Kind::kClip) return x >= a.parameter && x <= a.second ? 1 : 0;
  return (Value(a, x + kStep) - Value(a, x - kStep)) / (2 * kStep);
}

struct Outcome {
  std::vector<float> y, dx;
};

Outcome Expected(const std::vector<ChainLink>& links, const std::vector<RandomStream>& streams,
                 const std::vector<float>& x, const std::vector<float>& dy) {
  Outcome outcome;
  for (size_t i = 0; i < x.size(); ++i) {
    double value = x[i], slope = dy[i];
    int dropout = 0;
    for (const ChainLink& link : links) {
      if (link.is_dropout()) {
        const uint32_t word = streams[dropout++].Bits(i / 256 * 64 + i % 64)[i % 256 / 64];
        const bool keep = word >= static_cast<uint32_t>(static_cast<double>(link.dropout_ratio) * 4294967296.0);
        const double factor = keep ? 1 / (1 - static_cast<double>(link.dropout_ratio)) : 0;
        value *= factor;
        slope *= factor;
      } else {
        slope *= Slope(link.activation, value);
        value = Value(link.activation, value);
      }
    }
    outcome.y.push_back(static_cast<float>(value));
    outcome.dx.push_back(static_cast<float>(slope));
  }
  return outcome;
}

Tensor Whole(std::vector<float>& values) {
  return Tensor(values.data(), {Shape{static_cast<int64_t>(values.size())}, DType::kF32});
}
Tensor Whole(std::vector<BFloat16>& values) {
  return Tensor(values.data(), {Shape{static_cast<int64_t>(values.size())}, DType::kBF16});
}

template <typename Number>
Outcome RunChain(const ElementwiseChain& chain, const std::vector<RandomStream>& streams, std::vector<Number> x,
                 std::vector<Number> dy, bool in_place) {
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<uint32_t> masks(chain.mask_words(n), 0xFFFFFFFFu);
  std::vector<Number> y(n), dx(n);
  const bool over = in_place && !chain.gradient_reads_input();
  Tensor to = over ? Whole(x) : Whole(y);
  chain.Forward(streams, Whole(x), to, masks.empty() ? nullptr : masks.data());
  const void* known = chain.gradient_reads_output() ? to.raw() : chain.gradient_reads_input() ? x.data() : nullptr;
  chain.Backward(known, masks.data(), Whole(dy), in_place ? Whole(dy) : Whole(dx));
  const std::vector<Number>&result = over ? x : y, &gradient = in_place ? dy : dx;
  return {{result.begin(), result.end()}, {gradient.begin(), gradient.end()}};
}

class Chain : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kCount = 40000 + 77;
  Chain() : chain_(GetParam().links) {
    for (int i = 0; i < chain_.dropouts(); ++i) streams_.emplace_back(9, 100 + i);
    x_ = RandomValues(kCount, 1);
    for (float& value : x_) value *= 4;
    dy_ = RandomValues(kCount, 2);
  }

  ElementwiseChain chain_;
  std::vector<RandomStream> streams_;
  std::vector<float> x_, dy_;
};

TEST_P(Chain, ReadsWhatItMust) {
  EXPECT_EQ(chain_.gradient_reads_output(), GetParam().reads_output);
  EXPECT_EQ(chain_.gradient_reads_input(), GetParam().reads_input);
  EXPECT_EQ(chain_.mask_words(512) > 0, GetParam().keeps_masks);
}

TEST_P(Chain, EqualsItsLinksOneByOne) {
  const Outcome expected = Expected(GetParam().links, streams_, x_, dy_);
  for (bool in_place : {false, true}) {
    const Outcome actual = RunChain(chain_, streams_, x_, dy_, in_place);
    ExpectClose(expected.y, actual.y, 1e-6f, "y");
    ExpectClose(expected.dx, actual.dx, 2e-6f, "dx");
  }
}

TEST_P(Chain, DoesNotDependOnThreads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Outcome one = RunChain(chain_, streams_, x_, dy_, false);
  omp_set_num_threads(3);
  const Outcome three = RunChain(chain_, streams_, x_, dy_, false);
  omp_set_num_threads(before);
  EXPECT_EQ(one.y, three.y);
  EXPECT_EQ(one.dx, three.dx);
}

TEST_P(Chain, RoundsOnceInBFloat16) {
  const std::vector<BFloat16> x = Rounded(x_), dy = Rounded(dy_);
  const Outcome expected = RunChain(chain_, streams_, Widened(x), Widened(dy), false);
  const Outcome actual = RunChain(chain_, streams_, x, dy, false);
  ExpectRounded(expected.y, actual.y, "y");
  // From the output the gradient sees the rounded one.
  if (!chain_.gradient_reads_output()) ExpectRounded(expected.dx, actual.dx, "dx");
  if (chain_.gradient_reads_output()) ExpectClose(expected.dx, actual.dx, 0x1p-7f, "dx");
}

TEST_P(Chain, AddsABiasByColumn) {
  for (const int64_t columns : {1, 7, 600}) {
    const int64_t rows = kCount / columns;
    std::vector<float> y(x_.begin(), x_.begin() + rows * columns), biased = y;
    const std::vector<float> bias = RandomValues(columns, 5);
    for (int64_t i = 0; i < rows * columns; ++i) biased[i] += bias[i % columns];
    std::vector<uint32_t> masks(chain_.mask_words(rows * columns));
    chain_.ForwardWithBias(streams_, bias.data(), rows, columns, y.data(), masks.data());
    chain_.Forward(streams_, Whole(biased), Whole(biased), nullptr);
    ASSERT_EQ(y, biased) << columns;
  }
}

INSTANTIATE_TEST_SUITE_P(Links, Chain, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

// A fused loop gives the bits of the loops it stands for.
TEST(ElementwiseChain, ReluThenDropoutIsTheTwoOfThem) {
  const std::vector<RandomStream> streams = {RandomStream(3, 4)};
  std::vector<float> x = RandomValues(5000, 1), y(5000), relu(5000);
  ElementwiseChain({Act(Kind::kRelu), Drop(0.5f)}).Forward(streams, Whole(x), Whole(y), nullptr);
  Map(formula::Relu{}, Whole(relu), Whole(x));
  ElementwiseChain({Drop(0.5f)}).Forward(streams, Whole(relu), Whole(relu), nullptr);
  EXPECT_EQ(y, relu);
}

}  // namespace
}  // namespace crema
