#include "cuda/operations.h"
#include "cuda/sequences/recurrent.h"
#include "ops/sequences/rnn.h"

namespace crema::cuda {

namespace {

// One step, element by element of h. Neighbouring threads have neighbouring elements of a row.
struct ForwardStep {
  int64_t hidden;
  const float* fixed;              // what all steps have in common; null: none
  const float* next_continuation;  // null in the last step
  float *h, *next_hidden_before;

  __device__ void operator()(int64_t at) const {
    const float value = formula::Tanh(fixed ? h[at] + fixed[at] : h[at]);
    h[at] = value;
    if (next_continuation) next_hidden_before[at] = recurrent::Kept(next_continuation[at / hidden], value);
  }
};

// `gradient` goes from that of h, as the output has it, to that of the sums.
struct BackwardStep {
  int64_t hidden;
  const float* next_continuation;  // null in the last step
  const float* h;
  const float* next_hidden_gradient;  // before the next continuation; null for none
  float* gradient;

  __device__ void operator()(int64_t at) const {
    float dh = gradient[at];
    if (next_hidden_gradient) {
      dh += recurrent::Kept(next_continuation ? next_continuation[at / hidden] : 1.0f, next_hidden_gradient[at]);
    }
    gradient[at] = dh * (1.0f - h[at] * h[at]);
  }
};

struct TanhOf {
  float* y;
  __device__ void operator()(int64_t at) const { y[at] = formula::Tanh(y[at]); }
};

struct TanhBack {
  const float *dy, *y;
  float* dx;
  __device__ void operator()(int64_t at) const { dx[at] = dy[at] * (1.0f - y[at] * y[at]); }
};

}  // namespace

int64_t CudaOperations::RnnForwardWorkspace(const RnnProblem& problem) {
  return problem.static_inputs > 0 ? problem.batch * problem.hidden : 0;
}

int64_t CudaOperations::RnnBackwardWorkspace(const RnnProblem& problem) {
  return 2 * (problem.rows() + problem.batch) * problem.hidden;
}

void CudaOperations::RnnForward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                                const RnnTape& tape, float* output, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, rows = problem.rows(), state = batch * hidden;
  SumInputs(problem, hidden, inputs, parameters.of_hidden, tape.hidden, workspace);
  ForEach(queue(), state, KeepRows{hidden, inputs.continuation, inputs.initial_hidden, tape.hidden_before});
  for (int64_t t = 0; t < problem.steps; ++t) {
    const bool last = t + 1 == problem.steps;
    float* const h = tape.hidden + t * state;
    products_.Multiply(
        {.transpose_b = true, .m = batch, .n = hidden, .k = hidden, .beta = 1, .factors = problem.factors},
        tape.hidden_before + t * state, parameters.of_hidden.hidden_weights, h);
    ForEach(queue(), state,
            ForwardStep{hidden, problem.static_inputs > 0 ? workspace : nullptr,
                        last ? nullptr : inputs.continuation + (t + 1) * batch, h,
                        last ? nullptr : tape.hidden_before + (t + 1) * state});
  }
  products_.Multiply({.transpose_b = true,
                      .m = rows,
                      .n = hidden,
                      .k = hidden,
                      .bias = parameters.output_bias,
                      .factors = problem.factors},
                     tape.hidden, parameters.output_weights, output);
  ForEach(queue(), rows * hidden, TanhOf{output});
}

void CudaOperations::RnnBackward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                                 const RnnTape& tape, const RnnOutput& output, const RnnGradients& gradients,
                                 float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, rows = problem.rows(), state = batch * hidden;
  float* const output_sums = workspace;
  float* const hidden_sums = output_sums + rows * hidden;
  float* const total = hidden_sums + rows * hidden;  // of hidden_sums, over the steps
  float* const hidden_gradient = total + state;
  ForEach(queue(), rows * hidden, TanhBack{output.output_gradient, output.output, output_sums});
  if (gradients.output_weights) {
    products_.Multiply({.transpose_a = true, .m = hidden, .n = hidden, .k = rows, .factors = problem.factors},
                       output_sums, tape.hidden, gradients.output_weights);
  }
  if (gradients.output_bias) SumToBias({rows, hidden, 1}, output_sums, gradients.output_bias);
  products_.Multiply({.m = rows, .n = hidden, .k = hidden, .factors = problem.factors}, output_sums,
                     parameters.output_weights, hidden_sums);
  const int64_t first_product = gradients.of_hidden.initial_hidden ? 0 : 1;  // that anything needs
  for (int64_t t = problem.steps - 1; t >= 0; --t) {
    const bool last = t + 1 == problem.steps;
    float* const step_sums = hidden_sums + t * state;
    ForEach(queue(), state,
            BackwardStep{hidden, last ? nullptr : inputs.continuation + (t + 1) * batch, tape.hidden + t * state,
                         last ? output.final_hidden_gradient : hidden_gradient, step_sums});
    if (t < first_product) continue;
    products_.Multiply({.m = batch, .n = hidden, .k = hidden, .factors = problem.factors}, step_sums,
                       parameters.of_hidden.hidden_weights, hidden_gradient);
  }
  if (gradients.of_hidden.initial_hidden) {
    ForEach(queue(), state, KeepRows{hidden, inputs.continuation, hidden_gradient, gradients.of_hidden.initial_hidden});
  }
  InputGradients(problem, hidden, inputs, parameters.of_hidden, tape.hidden_before, hidden_sums, total,
                 gradients.of_hidden);
}

}  // namespace crema::cuda
