#include "ops/sequences/recurrent.h"

#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/vector_math.h"
#include "ops/matrices/gemm.h"
#include "ops/normalization/bias.h"
#include "ops/sequences/recurrent_formulas.h"

namespace crema {

namespace {

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

CREMA_MULTIVERSION void KeepRange(int64_t rows, int64_t width, const float* continuation, const float* x, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float k = continuation[row];
#pragma omp simd
    for (int64_t d = 0; d < width; ++d) y[row * width + d] = recurrent::Kept(k, x[row * width + d]);
  }
}

}  // namespace

void KeepRows(int64_t rows, int64_t width, const float* continuation, const float* x, float* y) {
  KeepRange(rows, width, continuation, x, y);
}

void SumInputs(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
               const RecurrentParameters& parameters, float* to, float* fixed) {
  const int64_t batch = problem.batch;
  // One product on top of what all steps have in common.
  if (problem.static_inputs > 0) {
    CopyRows(batch, sums, parameters.bias, 0, fixed, sums);
    Gemm(false, true, batch, sums, problem.static_inputs, 1, inputs.static_input, parameters.static_weights, 1, fixed);
    CopyRows(problem.steps, batch * sums, fixed, 0, to, batch * sums);
  } else {
    CopyRows(problem.rows(), sums, parameters.bias, 0, to, sums);
  }
  Gemm(false, true, problem.rows(), sums, problem.inputs, 1, inputs.input, parameters.input_weights, 1, to);
}

void InputGradients(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
                    const RecurrentParameters& parameters, const float* hidden_before, const float* gradient,
                    float* total, const RecurrentGradients& gradients) {
  const int64_t batch = problem.batch, rows = problem.rows();
  if (gradients.input != nullptr) {
    Gemm(false, false, rows, problem.inputs, sums, 1, gradient, parameters.input_weights, 0, gradients.input);
  }
  if (gradients.input_weights != nullptr) {
    Gemm(true, false, sums, problem.inputs, rows, 1, gradient, inputs.input, 0, gradients.input_weights);
  }
  if (gradients.hidden_weights != nullptr) {
    Gemm(true, false, sums, problem.hidden, rows, 1, gradient, hidden_before, 0, gradients.hidden_weights);
  }
  if (gradients.bias != nullptr) SumToBias({rows, sums, 1}, gradient, gradients.bias);
  if (problem.static_inputs == 0 || (gradients.static_input == nullptr && gradients.static_weights == nullptr)) return;
  ParallelFor(batch * sums, 4096,
              [&](int64_t begin, int64_t end) { SumSteps(begin, end, problem.steps, batch * sums, gradient, total); });
  if (gradients.static_input != nullptr) {
    Gemm(false, false, batch, problem.static_inputs, sums, 1, total, parameters.static_weights, 0,
         gradients.static_input);
  }
  if (gradients.static_weights != nullptr) {
    Gemm(true, false, sums, problem.static_inputs, batch, 1, total, inputs.static_input, 0, gradients.static_weights);
  }
}

}  // namespace crema
