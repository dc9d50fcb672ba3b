// Gated recurrent unit (Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine
// Translation", 2014), over sequences that run side by side, with the reset gate behind the hidden weights, as cuDNN
// and PyTorch have it: so one product for each step makes all that the state has a part in. Names as in
// ops/sequences/recurrent.h; the sums are the gates, each in two parts, of the inputs and of the state:
//   (r, z, n) = W_x x[t] + b + W_s s;   (r', z', n') = W_h (k[t] h[t-1])
//   r = sigmoid(r + r'), z = sigmoid(z + z');   n = tanh(n + r (n' + b_h))
//   h[t] = (1 - z) n + z k[t] h[t-1]
#ifndef CREMA_OPS_SEQUENCES_GRU_H_
#define CREMA_OPS_SEQUENCES_GRU_H_

#include "ops/sequences/recurrent.h"

namespace crema {

// Rows of weights and entries of bias: those of r, then z and n.
struct GruProblem : RecurrentProblem {
  int64_t gates() const { return 3 * hidden; }
};

using GruInputs = RecurrentInputs;

struct GruParameters {
  RecurrentParameters of_gates;
  const float* hidden_bias = nullptr;  // hidden: b_h
};

// Written by forward, read by backward.
struct GruTape {
  float* gates = nullptr;          // steps x batch x gates: r, z and n
  float* of_state = nullptr;       // steps x batch x hidden: n' + b_h
  float* hidden_before = nullptr;  // steps x batch x hidden: k[t] h[t-1]
};

// Gradients with respect to what forward made; the final one may be null.
struct GruOutputGradients {
  const float* output = nullptr;        // steps x batch x hidden
  const float* final_hidden = nullptr;  // batch x hidden
};

// Those that are not wanted are null. All of the others are overwritten.
struct GruGradients {
  RecurrentGradients of_gates;
  float* hidden_bias = nullptr;
};

// Floats of scratch memory, best aligned to 64 bytes.
int64_t GruForwardWorkspace(const GruProblem& problem);
int64_t GruBackwardWorkspace(const GruProblem& problem);

// output[t] = h[t]; the final state is in its last step. Runs on the threads of OpenMP; allocates nothing.
void GruForward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                const GruTape& tape, float* output, float* workspace);
// Backpropagation through all steps, and into the initial state where that is asked for.
void GruBackward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                 const GruTape& tape, const GruOutputGradients& of_output, const GruGradients& gradients,
                 float* workspace);

}  // namespace crema

#endif  // CREMA_OPS_SEQUENCES_GRU_H_
