// Long short-term memory (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997) with Caffe's gates, over
// sequences that run side by side. Names as in ops/sequences/recurrent.h, with h the output, too, and c the cell; the
// sums are the gates:
//   (i, f, o, g) = W_x x[t] + b + W_s s + W_h (k[t] h[t-1]);   i, f, o = sigmoid(...), g = tanh(...)
//   c[t] = f k[t] c[t-1] + i g;   h[t] = o tanh(c[t])
#ifndef CREMA_OPS_SEQUENCES_LSTM_H_
#define CREMA_OPS_SEQUENCES_LSTM_H_

#include "ops/sequences/recurrent.h"

namespace crema {

// Rows of weights and entries of bias: those of i, then f, o and g.
struct LstmProblem : RecurrentProblem {
  // Backward keeps the gradient of each sum within +-bound; 0: leaves them as they are.
  float bound = 0;

  int64_t gates() const { return 4 * hidden; }
};

using LstmInputs = RecurrentInputs;
using LstmParameters = RecurrentParameters;
using LstmGradients = RecurrentGradients;

// Written by forward, read by backward.
struct LstmTape {
  float* gates = nullptr;          // steps x batch x gates: i, f, o and g
  float* cells = nullptr;          // steps x batch x hidden: c
  float* hidden_before = nullptr;  // steps x batch x hidden: k[t] h[t-1]
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

// One step by itself, from sums that other layers make: rows x hidden of cells, outputs and their gradients, rows x 4
// hidden of sums and theirs, and one number of `continuation` for each row.
struct LstmUnitProblem {
  int64_t rows = 0, hidden = 0;
};
struct LstmUnitInputs {
  const float *cell_before = nullptr, *sums = nullptr, *continuation = nullptr;
};
void LstmUnitForward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, float* cell, float* output);
// `cell`, `output`: gradients with respect to these. Either of the others may be null.
void LstmUnitBackward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, const float* cell,
                      const float* output, float* cell_before_gradient, float* sums_gradient);

}  // namespace crema

#endif  // CREMA_OPS_SEQUENCES_LSTM_H_
