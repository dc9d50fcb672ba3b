// Long short-term memory (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997) with Caffe's gates, over
// sequences that run side by side. With x the input, h the output, c the cell, k the continuation and s the input that
// is the same at every step:
//   (i, f, o, g) = W_x x[t] + b + W_s s + W_h (k[t] h[t-1]);   i, f, o = sigmoid(...), g = tanh(...)
//   c[t] = f k[t] c[t-1] + i g;   h[t] = o tanh(c[t])
#ifndef CREMA_OPS_LSTM_H_
#define CREMA_OPS_LSTM_H_

#include <cstddef>
#include <cstdint>

#include "crema/tensor.h"

namespace crema {

// All arrays are f32 in CPU memory, row-major, of the extents named here.
struct LstmProblem {
  int64_t steps = 1, batch = 1;
  int64_t inputs = 1, static_inputs = 0;  // no static input: 0
  int64_t hidden = 1;                     // of h and of c
  Factors factors = Factors::kF32;        // on GPUs

  int64_t gates() const { return 4 * hidden; }
  int64_t rows() const { return steps * batch; }
};

struct LstmInputs {
  const float* input = nullptr;           // steps x batch x inputs
  const float* continuation = nullptr;    // steps x batch; 0 drops the state before that step
  const float* static_input = nullptr;    // batch x static_inputs
  const float* initial_hidden = nullptr;  // batch x hidden; read where the continuation of the first step is not 0
  const float* initial_cell = nullptr;    // batch x hidden; likewise
};

// Rows of weights and entries of bias: those of i, then f, o and g.
struct LstmParameters {
  const float* input_weights = nullptr;   // gates x inputs
  const float* bias = nullptr;            // gates
  const float* static_weights = nullptr;  // gates x static_inputs
  const float* hidden_weights = nullptr;  // gates x hidden
};

// Written by forward, read by backward.
struct LstmTape {
  float* gates = nullptr;          // steps x batch x gates: i, f, o and g
  float* cells = nullptr;          // steps x batch x hidden: c
  float* hidden_before = nullptr;  // steps x batch x hidden: k[t] h[t-1]
};

// Those that are not wanted are null. All of the others are overwritten.
struct LstmGradients {
  float *input = nullptr, *static_input = nullptr, *initial_hidden = nullptr, *initial_cell = nullptr;
  float *input_weights = nullptr, *bias = nullptr, *static_weights = nullptr, *hidden_weights = nullptr;
};

// Gradients with respect to what forward made; the final ones may be null.
struct LstmOutputGradients {
  const float* output = nullptr;                               // steps x batch x hidden
  const float *final_hidden = nullptr, *final_cell = nullptr;  // batch x hidden
};

// Floats of scratch memory, best aligned to 64 bytes.
int64_t LstmForwardWorkspace(const LstmProblem& problem);
int64_t LstmBackwardWorkspace(const LstmProblem& problem);

// output[t] = h[t]; the final state is in the last steps of output and tape.cells. Runs on the threads of OpenMP;
// allocates nothing.
void LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                 const LstmTape& tape, float* output, float* workspace);
// Backpropagation through all steps, and into the initial state where that is asked for.
void LstmBackward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                  const LstmTape& tape, const LstmOutputGradients& of_output, const LstmGradients& gradients,
                  float* workspace);

}  // namespace crema

#endif  // CREMA_OPS_LSTM_H_
