// What recurrent layers have in common. At every step of each sequence they add up
//   sums[t] = W_x x[t] + b + W_s s + W_h (k[t] h[t-1])
// with x the input, s the input that is the same at every step, h the hidden state and k the continuation; what becomes
// of the sums, which are hidden or a multiple of it, is the layer's own. Arrays are f32 in CPU memory, row-major, of
// the extents named here.
#ifndef CREMA_OPS_SEQUENCES_RECURRENT_H_
#define CREMA_OPS_SEQUENCES_RECURRENT_H_

#include <cstdint>

#include "crema/tensor.h"

namespace crema {

struct RecurrentProblem {
  int64_t steps = 1, batch = 1;
  int64_t inputs = 1, static_inputs = 0;  // no static input: 0
  int64_t hidden = 1;                     // of h
  Factors factors = Factors::kF32;        // on GPUs

  int64_t rows() const { return steps * batch; }
};

struct RecurrentInputs {
  const float* input = nullptr;           // steps x batch x inputs
  const float* continuation = nullptr;    // steps x batch; 0 drops the state before that step
  const float* static_input = nullptr;    // batch x static_inputs
  const float* initial_hidden = nullptr;  // batch x hidden; read where the continuation of the first step is not 0
  const float* initial_cell = nullptr;    // likewise, of an LSTM
};

struct RecurrentParameters {
  const float* input_weights = nullptr;   // sums x inputs
  const float* bias = nullptr;            // sums
  const float* static_weights = nullptr;  // sums x static_inputs
  const float* hidden_weights = nullptr;  // sums x hidden
};

// Those that are not wanted are null. All of the others are overwritten.
struct RecurrentGradients {
  float *input = nullptr, *static_input = nullptr, *initial_hidden = nullptr, *initial_cell = nullptr;
  float *input_weights = nullptr, *bias = nullptr, *static_weights = nullptr, *hidden_weights = nullptr;
};

// y[row] = k[row] * x[row], 0 where k is 0.
void KeepRows(int64_t rows, int64_t width, const float* continuation, const float* x, float* y);

// to[t] = W_x x[t] + b + W_s s for all steps, in one product. fixed: scratch of batch x sums with a static input.
void SumInputs(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
               const RecurrentParameters& parameters, float* to, float* fixed);
// From the gradient of all sums those of inputs and parameters, not of the initial state. hidden_before: k[t] h[t-1];
// total: scratch of batch x sums with a static input.
void InputGradients(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
                    const RecurrentParameters& parameters, const float* hidden_before, const float* gradient,
                    float* total, const RecurrentGradients& gradients);

}  // namespace crema

#endif  // CREMA_OPS_SEQUENCES_RECURRENT_H_
