#include "cuda/operations.h"
#include "cuda/sequences/recurrent.h"
#include "ops/sequences/lstm_formulas.h"

namespace crema::cuda {

namespace {

// One step, element by element of h. Neighbouring threads have neighbouring elements of a row.
struct ForwardStep {
  int64_t hidden;
  const float* static_gates;                      // null: none
  const float *continuation, *next_continuation;  // the next one is null in the last step
  const float* cell_before;
  float *gates, *cell, *output, *next_hidden_before;

  __device__ void operator()(int64_t at) const {
    const int64_t row = at / hidden, first = row * 4 * hidden + (at - row * hidden);
    float gate[4], new_cell, new_output;
    for (int j = 0; j < 4; ++j) gate[j] = gates[first + j * hidden];
    if (static_gates) {
      for (int j = 0; j < 4; ++j) gate[j] += static_gates[first + j * hidden];
    }
    lstm::Forward(continuation[row], cell_before[at], gate[0], gate[1], gate[2], gate[3], new_cell, new_output);
    for (int j = 0; j < 4; ++j) gates[first + j * hidden] = gate[j];
    cell[at] = new_cell;
    output[at] = new_output;
    if (next_continuation) next_hidden_before[at] = lstm::Kept(next_continuation[row], new_output);
  }
};

struct BackwardStep {
  int64_t hidden;
  float bound;
  const float *continuation, *next_continuation;  // the next one is null in the last step
  const float *gates, *cell, *cell_before;
  const float* output_gradient;
  const float* next_hidden_gradient;  // before the next continuation; null for none
  const float* cell_gradient;         // of this step's cell from later steps; null: 0
  float* cell_before_gradient;
  float* gates_gradient;

  __device__ void operator()(int64_t at) const {
    const int64_t row = at / hidden, first = row * 4 * hidden + (at - row * hidden);
    float dh = output_gradient[at];
    if (next_hidden_gradient) {
      dh += lstm::Kept(next_continuation ? next_continuation[row] : 1.0f, next_hidden_gradient[at]);
    }
    float dc = cell_gradient ? cell_gradient[at] : 0.0f;
    float gate[4], gradient[4];
    for (int j = 0; j < 4; ++j) gate[j] = gates[first + j * hidden];
    lstm::Backward(continuation[row], cell_before[at], cell[at], gate[0], gate[1], gate[2], gate[3], dh, bound, dc,
                   gradient[0], gradient[1], gradient[2], gradient[3]);
    for (int j = 0; j < 4; ++j) gates_gradient[first + j * hidden] = gradient[j];
    cell_before_gradient[at] = dc;
  }
};

struct ForwardUnit {
  int64_t hidden;
  LstmUnitInputs inputs;
  float *cell, *output;

  __device__ void operator()(int64_t at) const {
    const int64_t row = at / hidden;
    const float* const sums = inputs.sums + 3 * row * hidden + at;
    float i = sums[0], f = sums[hidden], o = sums[2 * hidden], g = sums[3 * hidden];
    lstm::Forward(inputs.continuation[row], inputs.cell_before[at], i, f, o, g, cell[at], output[at]);
  }
};

struct BackwardUnit {
  int64_t hidden;
  LstmUnitInputs inputs;
  const float *cell_gradient, *output_gradient;
  float *cell_before_gradient, *sums_gradient;  // null: not wanted

  __device__ void operator()(int64_t at) const {
    const int64_t row = at / hidden, first = 3 * row * hidden + at;
    const float k = inputs.continuation[row], before = inputs.cell_before[at];
    const float* const sums = inputs.sums + first;
    float i = sums[0], f = sums[hidden], o = sums[2 * hidden], g = sums[3 * hidden], cell, output;
    lstm::Forward(k, before, i, f, o, g, cell, output);
    float dc = cell_gradient[at], gradient[4];
    lstm::Backward(k, before, cell, i, f, o, g, output_gradient[at], 0, dc, gradient[0], gradient[1], gradient[2],
                   gradient[3]);
    if (cell_before_gradient) cell_before_gradient[at] = dc;
    if (!sums_gradient) return;
    for (int j = 0; j < 4; ++j) sums_gradient[first + j * hidden] = gradient[j];
  }
};

}  // namespace

int64_t CudaOperations::LstmForwardWorkspace(const LstmProblem& problem) {
  return problem.static_inputs > 0 ? problem.batch * problem.gates() : 0;
}

int64_t CudaOperations::LstmBackwardWorkspace(const LstmProblem& problem) {
  return (problem.rows() + problem.batch) * problem.gates() + 2 * problem.batch * problem.hidden;
}

void CudaOperations::LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                                 const LstmTape& tape, float* output, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates();
  const int64_t state = batch * hidden;
  const bool has_static = problem.static_inputs > 0;
  SumInputs(problem, gates, inputs, parameters, tape.gates, workspace);
  ForEach(queue(), state, KeepRows{hidden, inputs.continuation, inputs.initial_hidden, tape.hidden_before});
  for (int64_t t = 0; t < problem.steps; ++t) {
    const bool last = t + 1 == problem.steps;
    float* const step_gates = tape.gates + t * batch * gates;
    products_.Multiply(
        {.transpose_b = true, .m = batch, .n = gates, .k = hidden, .beta = 1, .factors = problem.factors},
        tape.hidden_before + t * state, parameters.hidden_weights, step_gates);
    ForEach(queue(), state,
            ForwardStep{hidden, has_static ? workspace : nullptr, inputs.continuation + t * batch,
                        last ? nullptr : inputs.continuation + (t + 1) * batch,
                        t == 0 ? inputs.initial_cell : tape.cells + (t - 1) * state, step_gates, tape.cells + t * state,
                        output + t * state, last ? nullptr : tape.hidden_before + (t + 1) * state});
  }
}

void CudaOperations::LstmBackward(const LstmProblem& problem, const LstmInputs& inputs,
                                  const LstmParameters& parameters, const LstmTape& tape,
                                  const LstmOutputGradients& of_output, const LstmGradients& gradients,
                                  float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates();
  const int64_t state = batch * hidden;
  float* const gates_gradient = workspace;
  float* const gates_total = gates_gradient + problem.rows() * gates;  // over the steps
  float* const cell_gradient = gates_total + batch * gates;
  float* const hidden_gradient = cell_gradient + state;
  const int64_t first_product = gradients.initial_hidden ? 0 : 1;  // that anything needs
  for (int64_t t = problem.steps - 1; t >= 0; --t) {
    const bool last = t + 1 == problem.steps;
    float* const step_gradient = gates_gradient + t * batch * gates;
    ForEach(queue(), state,
            BackwardStep{hidden, problem.bound, inputs.continuation + t * batch,
                         last ? nullptr : inputs.continuation + (t + 1) * batch, tape.gates + t * batch * gates,
                         tape.cells + t * state, t == 0 ? inputs.initial_cell : tape.cells + (t - 1) * state,
                         of_output.output + t * state, last ? of_output.final_hidden : hidden_gradient,
                         last ? of_output.final_cell : cell_gradient,
                         t == 0 && gradients.initial_cell ? gradients.initial_cell : cell_gradient, step_gradient});
    if (t < first_product) continue;
    products_.Multiply({.m = batch, .n = hidden, .k = gates, .factors = problem.factors}, step_gradient,
                       parameters.hidden_weights, hidden_gradient);
  }
  if (gradients.initial_hidden) {
    ForEach(queue(), state, KeepRows{hidden, inputs.continuation, hidden_gradient, gradients.initial_hidden});
  }
  InputGradients(problem, gates, inputs, parameters, tape.hidden_before, gates_gradient, gates_total, gradients);
}

void CudaOperations::LstmUnitForward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, float* cell,
                                     float* output) {
  ForEach(queue(), problem.rows * problem.hidden, ForwardUnit{problem.hidden, inputs, cell, output});
}

void CudaOperations::LstmUnitBackward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, const float* cell,
                                      const float* output, float* cell_before_gradient, float* sums_gradient) {
  ForEach(queue(), problem.rows * problem.hidden,
          BackwardUnit{problem.hidden, inputs, cell, output, cell_before_gradient, sums_gradient});
}

}  // namespace crema::cuda
