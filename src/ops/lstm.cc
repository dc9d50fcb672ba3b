#include "ops/lstm.h"

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/bias.h"
#include "ops/gemm.h"
#include "ops/lstm_formulas.h"
#include "ops/packed_product.h"
#include "ops/vector_math.h"

namespace crema {

namespace {

using lstm::Kept;

// Rows of h worth waking a thread for, where threads meet after every step.
int64_t RowGrain(const LstmProblem& problem) { return std::max<int64_t>(1, 1024 / problem.hidden); }

// Sequences do not see each other, so each thread can take some of them through all steps without ever waiting for the
// others, on hidden weights that are packed once. It reads all of them in every step, which is good while they fit into
// its cache, and packing must pay. Decided by the problem alone, so that results do not depend on the number of
// threads.
bool SideBySide(const LstmProblem& problem) {
  return problem.gates() * problem.hidden <= int64_t{1} << 19 && problem.batch >= 4 && problem.rows() >= 32;
}
constexpr int64_t kSequencesPerThread = 4;  // at least: fewer make products that are slow

// y[row] = k[row] * x[row].
CREMA_MULTIVERSION void KeepRows(int64_t rows, int64_t width, const float* continuation, const float* x, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float k = continuation[row];
#pragma omp simd
    for (int64_t d = 0; d < width; ++d) y[row * width + d] = Kept(k, x[row * width + d]);
  }
}

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
      lstm::Backward(k, before[d], cell[d], i[d], f[d], o[d], g[d], dh, dc[d], di[d], df[d], d_o[d], dg[d]);
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

// sums[batch][gates] = the sum over steps of x[steps][batch][gates].
CREMA_MULTIVERSION void SumSteps(int64_t begin, int64_t end, int64_t steps, int64_t stride, const float* x,
                                 float* sums) {
  std::memcpy(sums + begin, x + begin, (end - begin) * sizeof *sums);
  for (int64_t t = 1; t < steps; ++t) {
    const float* from = x + t * stride;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) sums[i] += from[i];
  }
}

}  // namespace

int64_t LstmForwardWorkspace(const LstmProblem& problem) {
  const int64_t packed = SideBySide(problem) ? PackedFloats(problem.hidden, problem.gates()) : 0;
  return packed + (problem.static_inputs > 0 ? problem.batch * problem.gates() : 0);
}

int64_t LstmBackwardWorkspace(const LstmProblem& problem) {
  const int64_t packed = SideBySide(problem) ? PackedFloats(problem.gates(), problem.hidden) : 0;
  return packed + (problem.rows() + problem.batch) * problem.gates() + 2 * problem.batch * problem.hidden;
}

void LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                 const LstmTape& tape, float* output, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates();
  const int64_t state = batch * hidden;
  const bool side_by_side = SideBySide(problem);
  float* const packed = workspace;
  float* const static_gates = packed + (side_by_side ? PackedFloats(hidden, gates) : 0);
  // What all steps take from their inputs, in one product on top of what they have in common.
  if (problem.static_inputs > 0) {
    CopyRows(batch, gates, parameters.bias, 0, static_gates, gates);
    Gemm(false, true, batch, gates, problem.static_inputs, 1, inputs.static_input, parameters.static_weights, 1,
         static_gates);
    CopyRows(problem.steps, batch * gates, static_gates, 0, tape.gates, batch * gates);
  } else {
    CopyRows(problem.rows(), gates, parameters.bias, 0, tape.gates, gates);
  }
  Gemm(false, true, problem.rows(), gates, problem.inputs, 1, inputs.input, parameters.input_weights, 1, tape.gates);

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
  if (side_by_side) {
    PackMatrix(true, hidden, gates, parameters.hidden_weights, packed);
    ParallelFor(batch, kSequencesPerThread, [&](int64_t begin, int64_t end) {
      for (int64_t t = 0; t < problem.steps; ++t) {
        const int64_t row = t * batch + begin;
        PackedProduct(end - begin, gates, hidden, tape.hidden_before + row * hidden, packed, true,
                      tape.gates + row * gates);
        ForwardRows(begin, end, hidden, step_of(t));
      }
    });
    return;
  }
  for (int64_t t = 0; t < problem.steps; ++t) {
    Gemm(false, true, batch, gates, hidden, 1, tape.hidden_before + t * state, parameters.hidden_weights, 1,
         tape.gates + t * batch * gates);
    ParallelFor(batch, RowGrain(problem),
                [&, step = step_of(t)](int64_t begin, int64_t end) { ForwardRows(begin, end, hidden, step); });
  }
}

void LstmBackward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                  const LstmTape& tape, const LstmOutputGradients& of_output, const LstmGradients& gradients,
                  float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, gates = problem.gates(), rows = problem.rows();
  const int64_t state = batch * hidden;
  const bool side_by_side = SideBySide(problem);
  float* const packed = workspace;
  float* const gates_gradient = packed + (side_by_side ? PackedFloats(gates, hidden) : 0);
  float* const gates_total = gates_gradient + rows * gates;  // over the steps
  float* const cell_gradient = gates_total + batch * gates;
  float* const hidden_gradient = cell_gradient + state;
  if (of_output.final_cell != nullptr) {
    Copy(state, of_output.final_cell, cell_gradient);
  } else {
    Fill(state, 0, cell_gradient);
  }
  const auto step_of = [&](int64_t t) {
    const bool last = t + 1 == problem.steps;
    return BackwardStep{inputs.continuation + t * batch,
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
  if (side_by_side) {
    PackMatrix(false, gates, hidden, parameters.hidden_weights, packed);
    ParallelFor(batch, kSequencesPerThread, [&](int64_t begin, int64_t end) {
      for (int64_t t = problem.steps - 1; t >= 0; --t) {
        BackwardRows(begin, end, hidden, step_of(t));
        if (t < first_product) continue;
        PackedProduct(end - begin, hidden, gates, gates_gradient + (t * batch + begin) * gates, packed, false,
                      hidden_gradient + begin * hidden);
      }
    });
  } else {
    for (int64_t t = problem.steps - 1; t >= 0; --t) {
      ParallelFor(batch, RowGrain(problem),
                  [&, step = step_of(t)](int64_t begin, int64_t end) { BackwardRows(begin, end, hidden, step); });
      if (t < first_product) continue;
      Gemm(false, false, batch, hidden, gates, 1, gates_gradient + t * batch * gates, parameters.hidden_weights, 0,
           hidden_gradient);
    }
  }
  if (gradients.initial_hidden != nullptr) {
    KeepRows(batch, hidden, inputs.continuation, hidden_gradient, gradients.initial_hidden);
  }
  if (gradients.initial_cell != nullptr) Copy(state, cell_gradient, gradients.initial_cell);

  if (gradients.input != nullptr) {
    Gemm(false, false, rows, problem.inputs, gates, 1, gates_gradient, parameters.input_weights, 0, gradients.input);
  }
  if (gradients.input_weights != nullptr) {
    Gemm(true, false, gates, problem.inputs, rows, 1, gates_gradient, inputs.input, 0, gradients.input_weights);
  }
  if (gradients.hidden_weights != nullptr) {
    Gemm(true, false, gates, hidden, rows, 1, gates_gradient, tape.hidden_before, 0, gradients.hidden_weights);
  }
  if (gradients.bias != nullptr) SumToBias({rows, gates, 1}, gates_gradient, gradients.bias);
  if (problem.static_inputs == 0 || (gradients.static_input == nullptr && gradients.static_weights == nullptr)) return;
  ParallelFor(batch * gates, 4096, [&](int64_t begin, int64_t end) {
    SumSteps(begin, end, problem.steps, batch * gates, gates_gradient, gates_total);
  });
  if (gradients.static_input != nullptr) {
    Gemm(false, false, batch, problem.static_inputs, gates, 1, gates_total, parameters.static_weights, 0,
         gradients.static_input);
  }
  if (gradients.static_weights != nullptr) {
    Gemm(true, false, gates, problem.static_inputs, batch, 1, gates_total, inputs.static_input, 0,
         gradients.static_weights);
  }
}

}  // namespace crema
