#include "ops/sequences/gru.h"

#include "base/multiversion.h"
#include "ops/arrays/vector_math.h"
#include "ops/matrices/gemm.h"
#include "ops/normalization/bias.h"
#include "ops/sequences/gru_formulas.h"
#include "ops/sequences/recurrent_steps.h"

namespace crema {

namespace {

using gru::Kept;

// The arrays of one step, from its first row on.
struct ForwardStep {
  const float* next_continuation;  // null in the last step
  const float* products;           // W_h (k[t] h[t-1])
  const float *hidden_before, *hidden_bias;
  float *gates, *of_state, *output, *next_hidden_before;
};

CREMA_MULTIVERSION void ForwardRows(int64_t begin, int64_t end, int64_t hidden, const ForwardStep& step) {
  const float* const bias = step.hidden_bias;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * hidden;
    const float *r_of_state = step.products + 3 * at, *z_of_state = r_of_state + hidden;
    const float *product = z_of_state + hidden, *before = step.hidden_before + at;
    float *r = step.gates + 3 * at, *z = r + hidden, *n = z + hidden;
    float *of_state = step.of_state + at, *output = step.output + at;
#pragma omp simd
    for (int64_t d = 0; d < hidden; ++d) {
      of_state[d] = product[d] + bias[d];
      output[d] = gru::Forward(r_of_state[d], z_of_state[d], of_state[d], before[d], r[d], z[d], n[d]);
    }
    if (step.next_continuation == nullptr) continue;
    const float next = step.next_continuation[row];
    float* kept = step.next_hidden_before + at;
#pragma omp simd
    for (int64_t d = 0; d < hidden; ++d) kept[d] = Kept(next, output[d]);
  }
}

struct BackwardStep {
  const float* next_continuation;  // null in the last step
  const float *gates, *of_state, *hidden_before;
  const float* output_gradient;
  const float* from_next;  // the gradient of the next step's hidden_before, in the last step of h; null for none
  float* before_gradient;  // of this step's hidden_before, less what goes through the weights; may be from_next
  float *sums_gradient, *products_gradient;
};

CREMA_MULTIVERSION void BackwardRows(int64_t begin, int64_t end, int64_t hidden, const BackwardStep& step) {
  for (int64_t row = begin; row < end; ++row) {
    const float next = step.next_continuation == nullptr ? 1.0f : step.next_continuation[row];
    const int64_t at = row * hidden;
    const float *r = step.gates + 3 * at, *z = r + hidden, *n = z + hidden;
    const float *of_state = step.of_state + at, *before = step.hidden_before + at;
    const float* from_above = step.output_gradient + at;
    const float* from_next = step.from_next == nullptr ? nullptr : step.from_next + at;
    float *dr = step.sums_gradient + 3 * at, *dz = dr + hidden, *dn = dz + hidden;
    float *dr_of_state = step.products_gradient + 3 * at, *dz_of_state = dr_of_state + hidden;
    float *dn_of_state = dz_of_state + hidden, *before_gradient = step.before_gradient + at;
    const auto element = [&](int64_t d, float dh) __attribute__((always_inline)) {
      before_gradient[d] =
          gru::Backward(of_state[d], before[d], r[d], z[d], n[d], dh, dr[d], dz[d], dn[d], dn_of_state[d]);
      dr_of_state[d] = dr[d];
      dz_of_state[d] = dz[d];
    };
    if (from_next == nullptr) {
#pragma omp simd
      for (int64_t d = 0; d < hidden; ++d) element(d, from_above[d]);
    } else {
#pragma omp simd
      for (int64_t d = 0; d < hidden; ++d) element(d, from_above[d] + Kept(next, from_next[d]));
    }
  }
}

}  // namespace

int64_t GruForwardWorkspace(const GruProblem& problem) {
  // Of one step the products, before it the static part of the sums.
  return recurrent::ForwardPacked(problem, problem.gates()) + problem.batch * problem.gates();
}

int64_t GruBackwardWorkspace(const GruProblem& problem) {
  return recurrent::BackwardPacked(problem, problem.gates()) + (2 * problem.rows() + problem.batch) * problem.gates() +
         problem.batch * problem.hidden;
}

void GruForward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                const GruTape& tape, float* output, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates();
  const int64_t state = batch * hidden;
  float* const packed = workspace;
  float* const products = packed + recurrent::ForwardPacked(problem, gates);
  SumInputs(problem, gates, inputs, parameters.of_gates, tape.gates, products);
  KeepRows(batch, hidden, inputs.continuation, inputs.initial_hidden, tape.hidden_before);
  const auto step_of = [&](int64_t t) {
    const bool last = t + 1 == problem.steps;
    return ForwardStep{.next_continuation = last ? nullptr : inputs.continuation + (t + 1) * batch,
                       .products = products,
                       .hidden_before = tape.hidden_before + t * state,
                       .hidden_bias = parameters.hidden_bias,
                       .gates = tape.gates + t * batch * gates,
                       .of_state = tape.of_state + t * state,
                       .output = output + t * state,
                       .next_hidden_before = last ? nullptr : tape.hidden_before + (t + 1) * state};
  };
  recurrent::ForwardSteps(problem, gates, parameters.of_gates.hidden_weights, tape.hidden_before, {.to = products},
                          packed,
                          [&](int64_t t, int64_t begin, int64_t end) { ForwardRows(begin, end, hidden, step_of(t)); });
}

void GruBackward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                 const GruTape& tape, const GruOutputGradients& of_output, const GruGradients& gradients,
                 float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates(), rows = problem.rows();
  const int64_t state = batch * hidden;
  float* const packed = workspace;
  float* const sums_gradient = packed + recurrent::BackwardPacked(problem, gates);
  float* const products_gradient = sums_gradient + rows * gates;
  float* const total = products_gradient + rows * gates;  // over the steps
  float* const before_gradient = total + batch * gates;
  const int64_t first_product = gradients.of_gates.initial_hidden == nullptr ? 1 : 0;  // that anything needs
  const auto step_of = [&](int64_t t) {
    const bool last = t + 1 == problem.steps;
    return BackwardStep{.next_continuation = last ? nullptr : inputs.continuation + (t + 1) * batch,
                        .gates = tape.gates + t * batch * gates,
                        .of_state = tape.of_state + t * state,
                        .hidden_before = tape.hidden_before + t * state,
                        .output_gradient = of_output.output + t * state,
                        .from_next = last ? of_output.final_hidden : before_gradient,
                        .before_gradient = before_gradient,
                        .sums_gradient = sums_gradient + t * batch * gates,
                        .products_gradient = products_gradient + t * batch * gates};
  };
  recurrent::BackwardSteps(problem, gates, parameters.of_gates.hidden_weights, products_gradient, first_product,
                           {.to = before_gradient, .add = true}, packed, [&](int64_t t, int64_t begin, int64_t end) {
                             BackwardRows(begin, end, hidden, step_of(t));
                           });
  if (gradients.of_gates.initial_hidden != nullptr) {
    KeepRows(batch, hidden, inputs.continuation, before_gradient, gradients.of_gates.initial_hidden);
  }
  RecurrentGradients of_inputs = gradients.of_gates;
  of_inputs.hidden_weights = nullptr;
  InputGradients(problem, gates, inputs, parameters.of_gates, tape.hidden_before, sums_gradient, total, of_inputs);
  if (gradients.of_gates.hidden_weights != nullptr) {
    Gemm(true, false, gates, hidden, rows, 1, products_gradient, tape.hidden_before, 0,
         gradients.of_gates.hidden_weights);
  }
  if (gradients.hidden_bias != nullptr) {
    SumToBias({rows, gates, 1}, products_gradient, total);
    Copy(hidden, total + 2 * hidden, gradients.hidden_bias);
  }
}

}  // namespace crema
