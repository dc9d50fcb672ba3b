#include "ops/sequences/gru.h"

#include <gtest/gtest.h>

#include <array>

#include "comparison.h"

namespace crema {
namespace {

// What the layer reads that has a gradient, in the order of Arrays::of.
enum Array { kInput, kStatic, kHidden, kInputWeights, kBias, kStaticWeights, kHiddenWeights, kHiddenBias, kArrays };
constexpr const char* kNames[kArrays] = {"input", "static input",   "initial hidden", "input weights",
                                         "bias",  "static weights", "hidden weights", "hidden bias"};

struct Arrays {
  explicit Arrays(const GruProblem& p)
      : of{RandomValues(p.rows() * p.inputs, 1),
           RandomValues(p.batch * p.static_inputs, 2),
           RandomValues(p.batch * p.hidden, 3),
           RandomValues(p.gates() * p.inputs, 4),
           RandomValues(p.gates(), 5),
           RandomValues(p.gates() * p.static_inputs, 6),
           RandomValues(p.gates() * p.hidden, 7),
           RandomValues(p.hidden, 8)},
        continuation(p.rows()),
        output_gradient(RandomValues(p.rows() * p.hidden, 9)),
        final_gradient(RandomValues(p.batch * p.hidden, 10)) {
    for (int64_t i = 0; i < p.rows(); ++i) continuation[i] = i % 5 == 3 ? 0.0f : i % 7 == 2 ? 0.5f : 1.0f;
    for (float& w : of[kHiddenWeights]) w *= 2.0f / static_cast<float>(p.hidden);
  }

  GruInputs inputs() const {
    return {of[kInput].data(), continuation.data(), of[kStatic].data(), of[kHidden].data(), nullptr};
  }
  GruParameters parameters() const {
    return {{of[kInputWeights].data(), of[kBias].data(), of[kStaticWeights].data(), of[kHiddenWeights].data()},
            of[kHiddenBias].data()};
  }

  std::array<std::vector<float>, kArrays> of;
  std::vector<float> continuation, output_gradient, final_gradient;
};

using Doubles = std::vector<double>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// h of all steps by the definition, in double, with `change` added to one element of one array.
Doubles Definition(const GruProblem& p, const Arrays& a, int array = -1, int64_t element = 0, double change = 0) {
  std::array<Doubles, kArrays> of;
  for (int i = 0; i < kArrays; ++i) of[i].assign(a.of[i].begin(), a.of[i].end());
  if (array >= 0) of[array][element] += change;
  const int64_t D = p.hidden, N = p.batch;
  Doubles h = of[kHidden];
  h.resize((p.steps + 1) * N * D);
  for (int64_t row = 0; row < p.rows(); ++row) {
    const double k = a.continuation[row];
    const auto sum = [&](int64_t count, const double* x, const Doubles& weights, int64_t gate) {
      double total = 0;
      for (int64_t i = 0; i < count; ++i) total += x[i] * weights[gate * count + i];
      return total;
    };
    const auto of_input = [&](int64_t gate) {
      return of[kBias][gate] + sum(p.inputs, &of[kInput][row * p.inputs], of[kInputWeights], gate) +
             sum(p.static_inputs, of[kStatic].data() + row % N * p.static_inputs, of[kStaticWeights], gate);
    };
    const auto of_state = [&](int64_t gate) { return k * sum(D, &h[row * D], of[kHiddenWeights], gate); };
    for (int64_t d = 0; d < D; ++d) {
      const double r = Sigmoid(of_input(d) + of_state(d)), z = Sigmoid(of_input(D + d) + of_state(D + d));
      const double n = std::tanh(of_input(2 * D + d) + r * (of_state(2 * D + d) + of[kHiddenBias][d]));
      h[(row + N) * D + d] = (1 - z) * n + z * k * h[row * D + d];
    }
  }
  return {h.begin() + N * D, h.end()};
}

// What the gradients handed to backward are those of.
double Loss(const Arrays& a, const Doubles& h) {
  double loss = 0;
  for (size_t i = 0; i < h.size(); ++i) loss += h[i] * a.output_gradient[i];
  const size_t last = h.size() - a.final_gradient.size();
  for (size_t i = last; i < h.size(); ++i) loss += h[i] * a.final_gradient[i - last];
  return loss;
}

struct Results {
  std::vector<float> output;
  std::array<std::vector<float>, kArrays> gradients;
};

Results RunForwardAndBackward(const GruProblem& p, const Arrays& a) {
  Results r{.output = Poison(p.rows() * p.hidden), .gradients = {}};
  for (int i = 0; i < kArrays; ++i) r.gradients[i] = Poison(static_cast<int64_t>(a.of[i].size()));
  std::vector<float> gates = Poison(p.rows() * p.gates()), of_state = Poison(p.rows() * p.hidden), before = of_state;
  PoisonedWorkspace forward(GruForwardWorkspace(p) * sizeof(float)), backward(GruBackwardWorkspace(p) * sizeof(float));
  const GruTape tape = {gates.data(), of_state.data(), before.data()};
  GruForward(p, a.inputs(), a.parameters(), tape, r.output.data(), reinterpret_cast<float*>(forward.data()));
  const bool has_static = p.static_inputs > 0;
  auto& to = r.gradients;
  GruBackward(p, a.inputs(), a.parameters(), tape, {a.output_gradient.data(), a.final_gradient.data()},
              {{.input = to[kInput].data(),
                .static_input = has_static ? to[kStatic].data() : nullptr,
                .initial_hidden = to[kHidden].data(),
                .input_weights = to[kInputWeights].data(),
                .bias = to[kBias].data(),
                .static_weights = has_static ? to[kStaticWeights].data() : nullptr,
                .hidden_weights = to[kHiddenWeights].data()},
               to[kHiddenBias].data()},
              reinterpret_cast<float*>(backward.data()));
  return r;
}

TEST(Gru, AgreesWithItsDefinition) {
  // The last one is too large for each thread to keep all weights.
  for (const GruProblem& p : {GruProblem{4, 3, 5, 0, 7}, GruProblem{1, 1, 1, 1, 1}, GruProblem{6, 13, 9, 4, 21},
                              GruProblem{3, 5, 8, 6, 421}}) {
    const std::string what = std::to_string(p.hidden) + " hidden: ";
    const Arrays arrays(p);
    const Results actual = RunForwardAndBackward(p, arrays);
    const Doubles output = Definition(p, arrays);
    ExpectClose({output.begin(), output.end()}, actual.output, 1e-5f, what + "output");
    for (int array = 0; array < kArrays; ++array) {
      const auto count = static_cast<int64_t>(arrays.of[array].size());
      const int64_t step = std::max<int64_t>(1, count / (p.hidden > 100 ? 3 : 100));
      for (int64_t i = step / 2; i < count; i += step) {
        const double change = 1e-4;
        const double slope = (Loss(arrays, Definition(p, arrays, array, i, change)) -
                              Loss(arrays, Definition(p, arrays, array, i, -change))) /
                             (2 * change);
        EXPECT_NEAR(slope, actual.gradients[array][i], 1e-4 * std::max(1.0, std::fabs(slope)))
            << what << "gradient of " << kNames[array] << ", element " << i;
      }
    }
  }
}

TEST(Gru, ADroppedStateMayBeInfinite) {
  const GruProblem p{2, 2, 3, 0, 4};
  Arrays arrays(p);
  std::fill(arrays.continuation.begin(), arrays.continuation.end(), 0.0f);
  const Results expected = RunForwardAndBackward(p, arrays);
  std::fill(arrays.of[kHidden].begin(), arrays.of[kHidden].end(), std::numeric_limits<float>::infinity());
  const Results actual = RunForwardAndBackward(p, arrays);
  EXPECT_EQ(expected.output, actual.output);
  EXPECT_EQ(expected.gradients, actual.gradients);
}

}  // namespace
}  // namespace crema
