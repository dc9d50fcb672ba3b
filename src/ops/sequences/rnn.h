// A plain recurrent net with Caffe's output layer, over sequences that run side by side (Elman, "Finding Structure in
// Time", 1990). Names as in ops/sequences/recurrent.h; the sums are as many as h:
//   h[t] = tanh(W_x x[t] + b + W_s s + W_h (k[t] h[t-1]));   o[t] = tanh(W_o h[t] + b_o)
#ifndef CREMA_OPS_SEQUENCES_RNN_H_
#define CREMA_OPS_SEQUENCES_RNN_H_

#include "ops/sequences/recurrent.h"

namespace crema {

using RnnProblem = RecurrentProblem;
using RnnInputs = RecurrentInputs;

struct RnnParameters {
  RecurrentParameters of_hidden;
  const float* output_weights = nullptr;  // hidden x hidden
  const float* output_bias = nullptr;     // hidden
};

// Written by forward, read by backward.
struct RnnTape {
  float* hidden = nullptr;         // steps x batch x hidden: h
  float* hidden_before = nullptr;  // steps x batch x hidden: k[t] h[t-1]
};

// What forward made and the gradients with respect to it; the final one may be null.
struct RnnOutput {
  const float* output = nullptr;                 // steps x batch x hidden: o
  const float* output_gradient = nullptr;        // likewise
  const float* final_hidden_gradient = nullptr;  // batch x hidden
};

// Those that are not wanted are null. All of the others are overwritten.
struct RnnGradients {
  RecurrentGradients of_hidden;
  float *output_weights = nullptr, *output_bias = nullptr;
};

// Floats of scratch memory, best aligned to 64 bytes.
int64_t RnnForwardWorkspace(const RnnProblem& problem);
int64_t RnnBackwardWorkspace(const RnnProblem& problem);

// The final state is in the last step of tape.hidden. Runs on the threads of OpenMP; allocates nothing.
void RnnForward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                const RnnTape& tape, float* output, float* workspace);
// Backpropagation through all steps, and into the initial state where that is asked for.
void RnnBackward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                 const RnnTape& tape, const RnnOutput& output, const RnnGradients& gradients, float* workspace);

}  // namespace crema

#endif  // CREMA_OPS_SEQUENCES_RNN_H_
