#include "ops/sequences/lstm.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/vector_math.h"
#include "ops/sequences/lstm_formulas.h"
#include "ops/sequences/recurrent_steps.h"

namespace crema {

namespace {

using lstm::Kept;

// The arrays of one step, from some row on.
struct ForwardStep {
  const float *continuation, *next_continuation;  // the next one is null in the last step
  const float* cell_before;
  float *gates, *cell, *output, *next_hidden_before;
};

CREMA_MULTIVERSION void ForwardRows(int64_t begin, int64_t end, int64_t hidden, const ForwardStep& step) {
  for (int64_t row = begin; row < end; ++row) {
    const float k = step.continuation[row];
    float *i = step.gates + row * 4 * hidden, *f = i + hidden, *o = f + hidden, *g = o + hidden;
    const float* before = step.cell_before + row * hidden;
    float *cell = step.cell + row * hidden, *output = step.output + row * hidden;
#pragma omp simd
    for (int64_t d = 0; d < hidden; ++d) lstm::Forward(k, before[d], i[d], f[d], o[d], g[d], cell[d], output[d]);
    if (step.next_continuation == nullptr) continue;
    const float next = step.next_continuation[row];
    float* kept = step.next_hidden_before + row * hidden;
#pragma omp simd
    for (int64_t d = 0; d < hidden; ++d) kept[d] = Kept(next, output[d]);
  }
}

struct BackwardStep {
  float bound;
  const float *continuation, *next_continuation;  // the next one is null in the last step
  const float *gates, *cell, *cell_before;
  const float* output_gradient;
  const float* next_hidden_gradient;  // before the next continuation; null for none
  float* cell_gradient;               // of this step's cell from later steps; becomes that of the cell before
  float* gates_gradient;
};

CREMA_MULTIVERSION void BackwardRows(int64_t begin, int64_t end, int64_t hidden, const BackwardStep& step) {
  for (int64_t row = begin; row < end; ++row) {
    const float k = step.continuation[row];
    const float next = step.next_continuation == nullptr ? 1.0f : step.next_continuation[row];
    const int64_t at = row * hidden;
    const float *i = step.gates + 4 * at, *f = i + hidden, *o = f + hidden, *g = o + hidden;
    const float *cell = step.cell + at, *before = step.cell_before + at, *from_above = step.output_gradient + at;
    const float* from_next = step.next_hidden_gradient == nullptr ? nullptr : step.next_hidden_gradient + at;
    float *di = step.gates_gradient + 4 * at, *df = di + hidden, *d_o = df + hidden, *dg = d_o + hidden;
    float* dc = step.cell_gradient + at;
    const auto element = [&](int64_t d, float dh) __attribute__((always_inline)) {
      lstm::Backward(k, before[d], cell[d], i[d], f[d], o[d], g[d], dh, step.bound, dc[d], di[d], df[d], d_o[d], dg[d]);
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

CREMA_MULTIVERSION void ForwardUnits(int64_t begin, int64_t end, int64_t hidden, const LstmUnitInputs& inputs,
                                     float* cells, float* outputs) {
  for (int64_t row = begin; row < end; ++row) {
    const float k = inputs.continuation[row];
    const float *sums = inputs.sums + row * 4 * hidden, *before = inputs.cell_before + row * hidden;
    float *cell = cells + row * hidden, *output = outputs + row * hidden;
#pragma omp simd
    for (int64_t d = 0; d < hidden; ++d) {
      float i = sums[d], f = sums[hidden + d], o = sums[2 * hidden + d], g = sums[3 * hidden + d];
      lstm::Forward(k, before[d], i, f, o, g, cell[d], output[d]);
    }
  }
}

struct UnitGradients {
  const float *cell, *output;
  float *cell_before, *sums;
};

// The gates are made again: that is cheaper than to keep them.
CREMA_MULTIVERSION void BackwardUnits(int64_t begin, int64_t end, int64_t hidden, const LstmUnitInputs& inputs,
                                      const UnitGradients& gradients) {
  for (int64_t row = begin; row < end; ++row) {
    const float k = inputs.continuation[row];
    const int64_t at = row * hidden;
    const float *sums = inputs.sums + 4 * at, *before = inputs.cell_before + at;
    const auto element = [&](int64_t d, float& dc, float& di, float& df, float& d_o, float& dg)
        __attribute__((always_inline)) {
      float i = sums[d], f = sums[hidden + d], o = sums[2 * hidden + d], g = sums[3 * hidden + d], cell, output;
      lstm::Forward(k, before[d], i, f, o, g, cell, output);
      dc = gradients.cell[at + d];
      lstm::Backward(k, before[d], cell, i, f, o, g, gradients.output[at + d], 0, dc, di, df, d_o, dg);
    };
    if (gradients.sums != nullptr) {
      float *di = gradients.sums + 4 * at, *df = di + hidden, *d_o = df + hidden, *dg = d_o + hidden;
#pragma omp simd
      for (int64_t d = 0; d < hidden; ++d) {
        float dc;
        element(d, dc, di[d], df[d], d_o[d], dg[d]);
      }
    }
    if (gradients.cell_before != nullptr) {
#pragma omp simd
      for (int64_t d = 0; d < hidden; ++d) {
        float di, df, d_o, dg;
        element(d, gradients.cell_before[at + d], di, df, d_o, dg);
      }
    }
  }
}

// Rows that are worth a thread.
int64_t UnitGrain(const LstmUnitProblem& problem) { return 4096 / std::max<int64_t>(1, problem.hidden) + 1; }

}  // namespace

int64_t LstmForwardWorkspace(const LstmProblem& problem) {
  const int64_t fixed = problem.static_inputs > 0 ? problem.batch * problem.gates() : 0;
  return recurrent::ForwardPacked(problem, problem.gates()) + fixed;
}

int64_t LstmBackwardWorkspace(const LstmProblem& problem) {
  return recurrent::BackwardPacked(problem, problem.gates()) + (problem.rows() + problem.batch) * problem.gates() +
         2 * problem.batch * problem.hidden;
}

void LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                 const LstmTape& tape, float* output, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates();
  const int64_t state = batch * hidden;
  float* const packed = workspace;
  SumInputs(problem, gates, inputs, parameters, tape.gates, packed + recurrent::ForwardPacked(problem, gates));
  KeepRows(batch, hidden, inputs.continuation, inputs.initial_hidden, tape.hidden_before);
  const auto step_of = [&](int64_t t) {
    const bool last = t + 1 == problem.steps;
    return ForwardStep{inputs.continuation + t * batch,
                       last ? nullptr : inputs.continuation + (t + 1) * batch,
                       t == 0 ? inputs.initial_cell : tape.cells + (t - 1) * state,
                       tape.gates + t * batch * gates,
                       tape.cells + t * state,
                       output + t * state,
                       last ? nullptr : tape.hidden_before + (t + 1) * state};
  };
  recurrent::ForwardSteps(problem, gates, parameters.hidden_weights, tape.hidden_before,
                          {.to = tape.gates, .step_floats = batch * gates, .add = true}, packed,
                          [&](int64_t t, int64_t begin, int64_t end) { ForwardRows(begin, end, hidden, step_of(t)); });
}

void LstmBackward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                  const LstmTape& tape, const LstmOutputGradients& of_output, const LstmGradients& gradients,
                  float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates();
  const int64_t state = batch * hidden;
  float* const packed = workspace;
  float* const gates_gradient = packed + recurrent::BackwardPacked(problem, gates);
  float* const gates_total = gates_gradient + problem.rows() * gates;  // over the steps
  float* const cell_gradient = gates_total + batch * gates;
  float* const hidden_gradient = cell_gradient + state;
  if (of_output.final_cell != nullptr) {
    Copy(state, of_output.final_cell, cell_gradient);
  } else {
    Fill(state, 0, cell_gradient);
  }
  const auto step_of = [&](int64_t t) {
    const bool last = t + 1 == problem.steps;
    return BackwardStep{problem.bound,
                        inputs.continuation + t * batch,
                        last ? nullptr : inputs.continuation + (t + 1) * batch,
                        tape.gates + t * batch * gates,
                        tape.cells + t * state,
                        t == 0 ? inputs.initial_cell : tape.cells + (t - 1) * state,
                        of_output.output + t * state,
                        last ? of_output.final_hidden : hidden_gradient,
                        cell_gradient,
                        gates_gradient + t * batch * gates};
  };
  const int64_t first_product = gradients.initial_hidden == nullptr ? 1 : 0;  // that anything needs
  recurrent::BackwardSteps(
      problem, gates, parameters.hidden_weights, gates_gradient, first_product, {.to = hidden_gradient}, packed,
      [&](int64_t t, int64_t begin, int64_t end) { BackwardRows(begin, end, hidden, step_of(t)); });
  if (gradients.initial_hidden != nullptr) {
    KeepRows(batch, hidden, inputs.continuation, hidden_gradient, gradients.initial_hidden);
  }
  if (gradients.initial_cell != nullptr) Copy(state, cell_gradient, gradients.initial_cell);
  InputGradients(problem, gates, inputs, parameters, tape.hidden_before, gates_gradient, gates_total, gradients);
}

void LstmUnitForward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, float* cell, float* output) {
  ParallelFor(problem.rows, UnitGrain(problem),
              [&](int64_t begin, int64_t end) { ForwardUnits(begin, end, problem.hidden, inputs, cell, output); });
}

void LstmUnitBackward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, const float* cell,
                      const float* output, float* cell_before_gradient, float* sums_gradient) {
  const UnitGradients gradients = {cell, output, cell_before_gradient, sums_gradient};
  ParallelFor(problem.rows, UnitGrain(problem),
              [&](int64_t begin, int64_t end) { BackwardUnits(begin, end, problem.hidden, inputs, gradients); });
}

}  // namespace crema
