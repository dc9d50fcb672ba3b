#include "ops/sequences/rnn.h"

#include "base/multiversion.h"
#include "ops/arrays/vector_math.h"
#include "ops/normalization/bias.h"
#include "ops/sequences/recurrent_formulas.h"
#include "ops/sequences/recurrent_steps.h"

namespace crema {

namespace {

using recurrent::Kept;

constexpr int64_t kGrain = 8192;  // elements worth waking a thread for

// Rows [begin, end) of one step: h from its sums, and what the next step takes of it.
CREMA_MULTIVERSION void ForwardRows(int64_t begin, int64_t end, int64_t hidden, const float* next_continuation,
                                    float* h, float* next_hidden_before) {
  for (int64_t row = begin; row < end; ++row) {
#pragma omp simd
    for (int64_t i = row * hidden; i < (row + 1) * hidden; ++i) h[i] = formula::Tanh(h[i]);
    if (next_continuation == nullptr) continue;
    const float next = next_continuation[row];
#pragma omp simd
    for (int64_t i = row * hidden; i < (row + 1) * hidden; ++i) next_hidden_before[i] = Kept(next, h[i]);
  }
}

// `gradient` goes from that of h, as the output has it, to that of the sums. next_continuation is null in the last
// step, next_hidden_gradient where there is none.
CREMA_MULTIVERSION void BackwardRows(int64_t begin, int64_t end, int64_t hidden, const float* next_continuation,
                                     const float* h, const float* next_hidden_gradient, float* gradient) {
  for (int64_t row = begin; row < end; ++row) {
    const float next = next_continuation == nullptr ? 1.0f : next_continuation[row];
    if (next_hidden_gradient == nullptr) {
#pragma omp simd
      for (int64_t i = row * hidden; i < (row + 1) * hidden; ++i) gradient[i] *= 1.0f - h[i] * h[i];
    } else {
#pragma omp simd
      for (int64_t i = row * hidden; i < (row + 1) * hidden; ++i) {
        gradient[i] = (gradient[i] + Kept(next, next_hidden_gradient[i])) * (1.0f - h[i] * h[i]);
      }
    }
  }
}

CREMA_MULTIVERSION void TanhRange(int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = formula::Tanh(y[i]);
}

CREMA_MULTIVERSION void TanhBackRange(int64_t n, const float* dy, const float* y, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1.0f - y[i] * y[i]);
}

}  // namespace

int64_t RnnForwardWorkspace(const RnnProblem& problem) {
  const int64_t fixed = problem.static_inputs > 0 ? problem.batch * problem.hidden : 0;
  return recurrent::ForwardPacked(problem, problem.hidden) + fixed;
}

int64_t RnnBackwardWorkspace(const RnnProblem& problem) {
  return recurrent::BackwardPacked(problem, problem.hidden) + 2 * (problem.rows() + problem.batch) * problem.hidden;
}

void RnnForward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                const RnnTape& tape, float* output, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, rows = problem.rows(), state = batch * hidden;
  float* const packed = workspace;
  SumInputs(problem, hidden, inputs, parameters.of_hidden, tape.hidden,
            packed + recurrent::ForwardPacked(problem, hidden));
  KeepRows(batch, hidden, inputs.continuation, inputs.initial_hidden, tape.hidden_before);
  recurrent::ForwardSteps(problem, hidden, parameters.of_hidden.hidden_weights, tape.hidden_before,
                          {.to = tape.hidden, .step_floats = state, .add = true}, packed,
                          [&](int64_t t, int64_t begin, int64_t end) {
                            const bool last = t + 1 == problem.steps;
                            ForwardRows(begin, end, hidden, last ? nullptr : inputs.continuation + (t + 1) * batch,
                                        tape.hidden + t * state, last ? nullptr : tape.hidden_before + (t + 1) * state);
                          });
  CopyRows(rows, hidden, parameters.output_bias, 0, output, hidden);
  Gemm(false, true, rows, hidden, hidden, 1, tape.hidden, parameters.output_weights, 1, output);
  ParallelFor(rows * hidden, kGrain, [&](int64_t begin, int64_t end) { TanhRange(end - begin, output + begin); });
}

void RnnBackward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                 const RnnTape& tape, const RnnOutput& output, const RnnGradients& gradients, float* workspace) {
  const int64_t batch = problem.batch, hidden = problem.hidden, rows = problem.rows(), state = batch * hidden;
  float* const packed = workspace;
  float* const output_sums = packed + recurrent::BackwardPacked(problem, hidden);
  float* const hidden_sums = output_sums + rows * hidden;
  float* const total = hidden_sums + rows * hidden;  // of hidden_sums, over the steps
  float* const hidden_gradient = total + state;
  ParallelFor(rows * hidden, kGrain, [&](int64_t begin, int64_t end) {
    TanhBackRange(end - begin, output.output_gradient + begin, output.output + begin, output_sums + begin);
  });
  if (gradients.output_weights != nullptr) {
    Gemm(true, false, hidden, hidden, rows, 1, output_sums, tape.hidden, 0, gradients.output_weights);
  }
  if (gradients.output_bias != nullptr) SumToBias({rows, hidden, 1}, output_sums, gradients.output_bias);
  Gemm(false, false, rows, hidden, hidden, 1, output_sums, parameters.output_weights, 0, hidden_sums);
  const int64_t first_product = gradients.of_hidden.initial_hidden == nullptr ? 1 : 0;  // that anything needs
  recurrent::BackwardSteps(problem, hidden, parameters.of_hidden.hidden_weights, hidden_sums, first_product,
                           {.to = hidden_gradient}, packed, [&](int64_t t, int64_t begin, int64_t end) {
                             const bool last = t + 1 == problem.steps;
                             BackwardRows(begin, end, hidden, last ? nullptr : inputs.continuation + (t + 1) * batch,
                                          tape.hidden + t * state,
                                          last ? output.final_hidden_gradient : hidden_gradient,
                                          hidden_sums + t * state);
                           });
  if (gradients.of_hidden.initial_hidden != nullptr) {
    KeepRows(batch, hidden, inputs.continuation, hidden_gradient, gradients.of_hidden.initial_hidden);
  }
  InputGradients(problem, hidden, inputs, parameters.of_hidden, tape.hidden_before, hidden_sums, total,
                 gradients.of_hidden);
}

}  // namespace crema
