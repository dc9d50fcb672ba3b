#include "cuda/operations.h"
#include "cuda/sequences/recurrent.h"
#include "ops/sequences/gru_formulas.h"

namespace crema::cuda {

namespace {

// One step, element by element of h. Neighbouring threads have neighbouring elements of a row.
struct ForwardStep {
  int64_t hidden;
  const float* static_sums;        // null: none
  const float* next_continuation;  // null in the last step
  const float* products;           // W_h (k[t] h[t-1])
  const float *hidden_before, *hidden_bias;
  float *gates, *of_state, *output, *next_hidden_before;

  __device__ void operator()(int64_t at) const {
    const int64_t row = at / hidden, column = at - row * hidden, first = row * 3 * hidden + column;
    float gate[3], product[3];
    for (int j = 0; j < 3; ++j) gate[j] = gates[first + j * hidden];
    for (int j = 0; j < 3; ++j) product[j] = products[first + j * hidden];
    if (static_sums) {
      for (int j = 0; j < 3; ++j) gate[j] += static_sums[first + j * hidden];
    }
    const float state_part = product[2] + hidden_bias[column];
    const float h = gru::Forward(product[0], product[1], state_part, hidden_before[at], gate[0], gate[1], gate[2]);
    for (int j = 0; j < 3; ++j) gates[first + j * hidden] = gate[j];
    of_state[at] = state_part;
    output[at] = h;
    if (next_continuation) next_hidden_before[at] = gru::Kept(next_continuation[row], h);
  }
};

struct BackwardStep {
  int64_t hidden;
  const float* next_continuation;  // null in the last step
  const float *gates, *of_state, *hidden_before;
  const float* output_gradient;
  const float* from_next;  // the gradient of the next step's hidden_before, in the last step of h; null for none
  float* before_gradient;  // of this step's hidden_before, less what goes through the weights; may be from_next
  float *sums_gradient, *products_gradient;

  __device__ void operator()(int64_t at) const {
    const int64_t row = at / hidden, first = row * 3 * hidden + (at - row * hidden);
    float dh = output_gradient[at];
    if (from_next) dh += gru::Kept(next_continuation ? next_continuation[row] : 1.0f, from_next[at]);
    float gate[3], gradient[3], dn_of_state;
    for (int j = 0; j < 3; ++j) gate[j] = gates[first + j * hidden];
    before_gradient[at] = gru::Backward(of_state[at], hidden_before[at], gate[0], gate[1], gate[2], dh, gradient[0],
                                        gradient[1], gradient[2], dn_of_state);
    for (int j = 0; j < 3; ++j) sums_gradient[first + j * hidden] = gradient[j];
    gradient[2] = dn_of_state;
    for (int j = 0; j < 3; ++j) products_gradient[first + j * hidden] = gradient[j];
  }
};

}  // namespace

int64_t CudaOperations::GruForwardWorkspace(const GruProblem& problem) {
  // Of one step the products; the static part of the sums.
  return (problem.static_inputs > 0 ? 2 : 1) * problem.batch * problem.gates();
}

int64_t CudaOperations::GruBackwardWorkspace(const GruProblem& problem) {
  return (2 * problem.rows() + problem.batch) * problem.gates() + problem.batch * problem.hidden;
}

void CudaOperations::GruForward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                                const GruTape& tape, float* output, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates();
  const int64_t state = batch * hidden;
  float* const products = workspace;
  float* const fixed = problem.static_inputs > 0 ? products + batch * gates : nullptr;
  SumInputs(problem, gates, inputs, parameters.of_gates, tape.gates, fixed);
  ForEach(queue(), state, KeepRows{hidden, inputs.continuation, inputs.initial_hidden, tape.hidden_before});
  for (int64_t t = 0; t < problem.steps; ++t) {
    const bool last = t + 1 == problem.steps;
    products_.Multiply({.transpose_b = true, .m = batch, .n = gates, .k = hidden, .factors = problem.factors},
                       tape.hidden_before + t * state, parameters.of_gates.hidden_weights, products);
    ForEach(queue(), state,
            ForwardStep{hidden, fixed, last ? nullptr : inputs.continuation + (t + 1) * batch, products,
                        tape.hidden_before + t * state, parameters.hidden_bias, tape.gates + t * batch * gates,
                        tape.of_state + t * state, output + t * state,
                        last ? nullptr : tape.hidden_before + (t + 1) * state});
  }
}

void CudaOperations::GruBackward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                                 const GruTape& tape, const GruOutputGradients& of_output,
                                 const GruGradients& gradients, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates(), rows = problem.rows();
  const int64_t state = batch * hidden;
  float* const sums_gradient = workspace;
  float* const products_gradient = sums_gradient + rows * gates;
  float* const total = products_gradient + rows * gates;  // over the steps
  float* const before_gradient = total + batch * gates;
  const int64_t first_product = gradients.of_gates.initial_hidden ? 0 : 1;  // that anything needs
  for (int64_t t = problem.steps - 1; t >= 0; --t) {
    const bool last = t + 1 == problem.steps;
    float* const step_gradient = products_gradient + t * batch * gates;
    ForEach(queue(), state,
            BackwardStep{hidden, last ? nullptr : inputs.continuation + (t + 1) * batch, tape.gates + t * batch * gates,
                         tape.of_state + t * state, tape.hidden_before + t * state, of_output.output + t * state,
                         last ? of_output.final_hidden : before_gradient, before_gradient,
                         sums_gradient + t * batch * gates, step_gradient});
    if (t < first_product) continue;
    products_.Multiply({.m = batch, .n = hidden, .k = gates, .beta = 1, .factors = problem.factors}, step_gradient,
                       parameters.of_gates.hidden_weights, before_gradient);
  }
  if (gradients.of_gates.initial_hidden) {
    ForEach(queue(), state, KeepRows{hidden, inputs.continuation, before_gradient, gradients.of_gates.initial_hidden});
  }
  RecurrentGradients of_inputs = gradients.of_gates;
  of_inputs.hidden_weights = nullptr;
  InputGradients(problem, gates, inputs, parameters.of_gates, tape.hidden_before, sums_gradient, total, of_inputs);
  if (gradients.of_gates.hidden_weights) {
    products_.Multiply({.transpose_a = true, .m = gates, .n = hidden, .k = rows, .factors = problem.factors},
                       products_gradient, tape.hidden_before, gradients.of_gates.hidden_weights);
  }
  if (gradients.hidden_bias) {
    SumToBias({rows, gates, 1}, products_gradient, total);
    Copy(total + 2 * hidden, gradients.hidden_bias, static_cast<size_t>(hidden) * sizeof(float));
  }
}

}  // namespace crema::cuda
