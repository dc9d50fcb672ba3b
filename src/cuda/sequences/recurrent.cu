#include "cuda/operations.h"

namespace crema::cuda {

void CudaOperations::SumInputs(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
                               const RecurrentParameters& parameters, float* to, float* fixed) {
  const bool has_static = problem.static_inputs > 0;
  // The bias is added to what all steps have in common; `fixed` is added step by step.
  if (has_static) {
    products_.Multiply(
        {.transpose_b = true, .m = problem.batch, .n = sums, .k = problem.static_inputs, .bias = parameters.bias},
        inputs.static_input, parameters.static_weights, fixed);
  }
  products_.Multiply({.transpose_b = true,
                      .m = problem.rows(),
                      .n = sums,
                      .k = problem.inputs,
                      .bias = has_static ? nullptr : parameters.bias,
                      .factors = problem.factors},
                     inputs.input, parameters.input_weights, to);
}

void CudaOperations::InputGradients(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
                                    const RecurrentParameters& parameters, const float* hidden_before,
                                    const float* gradient, float* total, const RecurrentGradients& gradients) {
  const int64_t batch = problem.batch, rows = problem.rows();
  if (gradients.input) {
    products_.Multiply({.m = rows, .n = problem.inputs, .k = sums, .factors = problem.factors}, gradient,
                       parameters.input_weights, gradients.input);
  }
  if (gradients.input_weights) {
    products_.Multiply({.transpose_a = true, .m = sums, .n = problem.inputs, .k = rows, .factors = problem.factors},
                       gradient, inputs.input, gradients.input_weights);
  }
  if (gradients.hidden_weights) {
    products_.Multiply({.transpose_a = true, .m = sums, .n = problem.hidden, .k = rows, .factors = problem.factors},
                       gradient, hidden_before, gradients.hidden_weights);
  }
  if (gradients.bias) SumToBias({rows, sums, 1}, gradient, gradients.bias);
  if (problem.static_inputs == 0 || (!gradients.static_input && !gradients.static_weights)) return;
  SumToBias({problem.steps, batch * sums, 1}, gradient, total);
  if (gradients.static_input) {
    products_.Multiply({.m = batch, .n = problem.static_inputs, .k = sums, .factors = problem.factors}, total,
                       parameters.static_weights, gradients.static_input);
  }
  if (gradients.static_weights) {
    products_.Multiply(
        {.transpose_a = true, .m = sums, .n = problem.static_inputs, .k = batch, .factors = problem.factors}, total,
        inputs.static_input, gradients.static_weights);
  }
}

}  // namespace crema::cuda
