// The arithmetic of one element of an LSTM's state, shared by the CPU and kernels of a GPU; names as in
// ops/sequences/lstm.h.
#ifndef CREMA_OPS_SEQUENCES_LSTM_FORMULAS_H_
#define CREMA_OPS_SEQUENCES_LSTM_FORMULAS_H_

#include "ops/arrays/functors.h"
#include "ops/sequences/recurrent_formulas.h"

namespace crema::lstm {

using recurrent::Kept;

// `i`, `f`, `o` and `g` go from sums to what the gates let through.
CREMA_FORMULA void Forward(float k, float cell_before, float& i, float& f, float& o, float& g, float& cell,
                           float& output) {
  i = formula::Sigmoid()(i);
  f = formula::Sigmoid()(f);
  o = formula::Sigmoid()(o);
  g = formula::Tanh(g);
  cell = f * Kept(k, cell_before) + i * g;
  output = o * formula::Tanh(cell);
}

// Within +-bound; 0: as it is.
CREMA_FORMULA float Bounded(float bound, float x) {
  const float high = x > bound ? bound : x;
  const float within = high < -bound ? -bound : high;
  return bound > 0 ? within : x;
}

// `dh`: the gradient of the output. `dc` goes from the cell's, from later steps, to that of the cell before.
CREMA_FORMULA void Backward(float k, float cell_before, float cell, float i, float f, float o, float g, float dh,
                            float bound, float& dc, float& di, float& df, float& d_o, float& dg) {
  const float tanh = formula::Tanh(cell);
  const float total = dc + dh * o * (1.0f - tanh * tanh);
  di = Bounded(bound, total * g * i * (1.0f - i));
  df = Bounded(bound, total * Kept(k, cell_before) * f * (1.0f - f));
  d_o = Bounded(bound, dh * tanh * o * (1.0f - o));
  dg = Bounded(bound, total * i * (1.0f - g * g));
  dc = Kept(k, total * f);
}

}  // namespace crema::lstm

#endif  // CREMA_OPS_SEQUENCES_LSTM_FORMULAS_H_
