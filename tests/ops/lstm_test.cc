#include "ops/sequences/lstm.h"

#include <gtest/gtest.h>

#include "comparison.h"

namespace crema {
namespace {

using Doubles = std::vector<double>;

struct Arrays {
  explicit Arrays(const LstmProblem& p)
      : input(RandomValues(p.rows() * p.inputs, 1)),
        continuation(p.rows()),
        static_input(RandomValues(p.batch * p.static_inputs, 3)),
        hidden(RandomValues(p.batch * p.hidden, 4)),
        cell(RandomValues(p.batch * p.hidden, 5)),
        input_weights(RandomValues(p.gates() * p.inputs, 6)),
        bias(RandomValues(p.gates(), 7)),
        static_weights(RandomValues(p.gates() * p.static_inputs, 8)),
        hidden_weights(RandomValues(p.gates() * p.hidden, 9)),
        output_gradient(RandomValues(p.rows() * p.hidden, 10)),
        final_hidden(RandomValues(p.batch * p.hidden, 11)),
        final_cell(RandomValues(p.batch * p.hidden, 12)) {
    for (int64_t i = 0; i < p.rows(); ++i) continuation[i] = i % 5 == 3 ? 0.0f : i % 7 == 2 ? 0.5f : 1.0f;
    for (float& w : hidden_weights) w *= 2.0f / static_cast<float>(p.hidden);
  }

  LstmInputs inputs() const {
    return {input.data(), continuation.data(), static_input.data(), hidden.data(), cell.data()};
  }
  LstmParameters parameters() const {
    return {input_weights.data(), bias.data(), static_weights.data(), hidden_weights.data()};
  }

  std::vector<float> input, continuation, static_input, hidden, cell;
  std::vector<float> input_weights, bias, static_weights, hidden_weights;
  std::vector<float> output_gradient, final_hidden, final_cell;
};

struct Results {
  std::vector<float> output, last_cell;
  std::vector<float> input, static_input, hidden, cell, input_weights, bias, static_weights, hidden_weights;
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<float> ToFloats(const Doubles& values) { return {values.begin(), values.end()}; }

// The definition, one element at a time, in double.
Results PlainLoops(const LstmProblem& p, const Arrays& a) {
  const int64_t D = p.hidden, G = p.gates(), N = p.batch;
  Doubles gate(p.rows() * G), cells((p.steps + 1) * N * D), hiddens((p.steps + 1) * N * D);
  std::copy(a.cell.begin(), a.cell.end(), cells.begin());
  std::copy(a.hidden.begin(), a.hidden.end(), hiddens.begin());
  for (int64_t row = 0; row < p.rows(); ++row) {
    const int64_t n = row % N;
    const double k = a.continuation[row];
    for (int64_t g = 0; g < G; ++g) {
      double sum = a.bias[g];
      for (int64_t i = 0; i < p.inputs; ++i)
        sum += double{a.input[row * p.inputs + i]} * a.input_weights[g * p.inputs + i];
      for (int64_t i = 0; i < p.static_inputs; ++i) {
        sum += double{a.static_input[n * p.static_inputs + i]} * a.static_weights[g * p.static_inputs + i];
      }
      for (int64_t d = 0; d < D; ++d) sum += k * hiddens[row * D + d] * a.hidden_weights[g * D + d];
      gate[row * G + g] = g < 3 * D ? Sigmoid(sum) : std::tanh(sum);
    }
    for (int64_t d = 0; d < D; ++d) {
      const double* at = &gate[row * G + d];
      const double c = at[D] * k * cells[row * D + d] + at[0] * at[3 * D];
      cells[(row + N) * D + d] = c;
      hiddens[(row + N) * D + d] = at[2 * D] * std::tanh(c);
    }
  }

  Doubles dx(a.input.size()), ds(a.static_input.size()), dh(N * D), dc(N * D), dwx(a.input_weights.size()), db(G);
  Doubles dws(a.static_weights.size()), dwh(a.hidden_weights.size());
  std::copy(a.final_hidden.begin(), a.final_hidden.end(), dh.begin());
  std::copy(a.final_cell.begin(), a.final_cell.end(), dc.begin());
  for (int64_t row = p.rows() - 1; row >= 0; --row) {
    const int64_t n = row % N;
    const double k = a.continuation[row];
    Doubles dgate(G), before(D);
    for (int64_t d = 0; d < D; ++d) {
      const double* at = &gate[row * G + d];
      const double i = at[0], f = at[D], o = at[2 * D], g = at[3 * D], tanh = std::tanh(cells[(row + N) * D + d]);
      const double h = dh[n * D + d] + a.output_gradient[row * D + d];
      const double c = dc[n * D + d] + h * o * (1 - tanh * tanh);
      dgate[d] = c * g * i * (1 - i);
      dgate[D + d] = c * k * cells[row * D + d] * f * (1 - f);
      dgate[2 * D + d] = h * tanh * o * (1 - o);
      dgate[3 * D + d] = c * i * (1 - g * g);
      dc[n * D + d] = c * f * k;
    }
    for (int64_t g = 0; g < G; ++g) {
      db[g] += dgate[g];
      for (int64_t i = 0; i < p.inputs; ++i) {
        dx[row * p.inputs + i] += dgate[g] * a.input_weights[g * p.inputs + i];
        dwx[g * p.inputs + i] += dgate[g] * a.input[row * p.inputs + i];
      }
      for (int64_t i = 0; i < p.static_inputs; ++i) {
        ds[n * p.static_inputs + i] += dgate[g] * a.static_weights[g * p.static_inputs + i];
        dws[g * p.static_inputs + i] += dgate[g] * a.static_input[n * p.static_inputs + i];
      }
      for (int64_t d = 0; d < D; ++d) {
        before[d] += dgate[g] * k * a.hidden_weights[g * D + d];
        dwh[g * D + d] += dgate[g] * k * hiddens[row * D + d];
      }
    }
    std::copy(before.begin(), before.end(), dh.begin() + n * D);
  }
  const auto last = [&](const Doubles& all) { return Doubles(all.end() - N * D, all.end()); };
  return {ToFloats({hiddens.begin() + N * D, hiddens.end()}),
          ToFloats(last(cells)),
          ToFloats(dx),
          ToFloats(ds),
          ToFloats(dh),
          ToFloats(dc),
          ToFloats(dwx),
          ToFloats(db),
          ToFloats(dws),
          ToFloats(dwh)};
}

Results RunForwardAndBackward(const LstmProblem& p, const Arrays& a) {
  Results r{Poison(p.rows() * p.hidden),     {},
            Poison(a.input.size()),          Poison(a.static_input.size()),
            Poison(a.hidden.size()),         Poison(a.cell.size()),
            Poison(a.input_weights.size()),  Poison(a.bias.size()),
            Poison(a.static_weights.size()), Poison(a.hidden_weights.size())};
  std::vector<float> gates = Poison(p.rows() * p.gates()), cells = Poison(p.rows() * p.hidden);
  std::vector<float> before = cells, forward = Poison(LstmForwardWorkspace(p)),
                     backward = Poison(LstmBackwardWorkspace(p));
  const LstmTape tape = {gates.data(), cells.data(), before.data()};
  LstmForward(p, a.inputs(), a.parameters(), tape, r.output.data(), forward.data());
  r.last_cell.assign(cells.end() - p.batch * p.hidden, cells.end());
  const bool has_static = p.static_inputs > 0;
  LstmBackward(
      p, a.inputs(), a.parameters(), tape, {a.output_gradient.data(), a.final_hidden.data(), a.final_cell.data()},
      {r.input.data(), has_static ? r.static_input.data() : nullptr, r.hidden.data(), r.cell.data(),
       r.input_weights.data(), r.bias.data(), has_static ? r.static_weights.data() : nullptr, r.hidden_weights.data()},
      backward.data());
  return r;
}

TEST(Lstm, AgreesWithPlainLoops) {
  // The last one is too large for each thread to keep all weights.
  for (const LstmProblem& p : {LstmProblem{4, 3, 5, 0, 7}, LstmProblem{1, 1, 1, 1, 1}, LstmProblem{6, 13, 9, 4, 21},
                               LstmProblem{3, 5, 8, 6, 365}}) {
    const Arrays arrays(p);
    const Results expected = PlainLoops(p, arrays), actual = RunForwardAndBackward(p, arrays);
    const std::string what = std::to_string(p.hidden) + " hidden: ";
    ExpectClose(expected.output, actual.output, 1e-5f, what + "output");
    ExpectClose(expected.last_cell, actual.last_cell, 1e-5f, what + "last cell");
    ExpectClose(expected.input, actual.input, 1e-4f, what + "gradient of input");
    ExpectClose(expected.static_input, actual.static_input, 1e-4f, what + "gradient of static input");
    ExpectClose(expected.hidden, actual.hidden, 1e-4f, what + "gradient of initial hidden");
    ExpectClose(expected.cell, actual.cell, 1e-4f, what + "gradient of initial cell");
    ExpectClose(expected.input_weights, actual.input_weights, 1e-4f, what + "gradient of input weights");
    ExpectClose(expected.bias, actual.bias, 1e-4f, what + "gradient of bias");
    ExpectClose(expected.static_weights, actual.static_weights, 1e-4f, what + "gradient of static weights");
    ExpectClose(expected.hidden_weights, actual.hidden_weights, 1e-4f, what + "gradient of hidden weights");
  }
}

TEST(Lstm, ADroppedStateMayBeInfinite) {
  const LstmProblem p{2, 2, 3, 0, 4};
  Arrays arrays(p);
  std::fill(arrays.continuation.begin(), arrays.continuation.end(), 0.0f);
  const Results expected = RunForwardAndBackward(p, arrays);
  std::fill(arrays.hidden.begin(), arrays.hidden.end(), std::numeric_limits<float>::infinity());
  std::fill(arrays.cell.begin(), arrays.cell.end(), std::numeric_limits<float>::quiet_NaN());
  const Results actual = RunForwardAndBackward(p, arrays);
  EXPECT_EQ(expected.output, actual.output);
  EXPECT_EQ(expected.hidden_weights, actual.hidden_weights);
  EXPECT_EQ(expected.bias, actual.bias);
}

}  // namespace
}  // namespace crema
