// The arithmetic of one element of a gated recurrent unit's state, shared by the CPU and kernels of a GPU; names as in
// ops/sequences/gru.h.
#ifndef CREMA_OPS_SEQUENCES_GRU_FORMULAS_H_
#define CREMA_OPS_SEQUENCES_GRU_FORMULAS_H_

#include "ops/arrays/functors.h"
#include "ops/sequences/recurrent_formulas.h"

namespace crema::gru {

using recurrent::Kept;

// `r`, `z` and `n` go from the inputs' part of the sums to what the gates let through. `of_state`: n' + b_h; `before`:
// k[t] h[t-1]. Returns h[t].
CREMA_FORMULA float Forward(float r_of_state, float z_of_state, float of_state, float before, float& r, float& z,
                            float& n) {
  r = formula::Sigmoid()(r + r_of_state);
  z = formula::Sigmoid()(z + z_of_state);
  n = formula::Tanh(n + r * of_state);
  return n + z * (before - n);
}

// `dh`: the gradient of h[t]. `dn` is that of the inputs' part of the sum, `dn_of_state` that of n'; those of r and z
// are the same for both parts. Returns the gradient of `before`, less what goes through the hidden weights.
CREMA_FORMULA float Backward(float of_state, float before, float r, float z, float n, float dh, float& dr, float& dz,
                             float& dn, float& dn_of_state) {
  dz = dh * (before - n) * z * (1.0f - z);
  dn = dh * (1.0f - z) * (1.0f - n * n);
  dr = dn * of_state * r * (1.0f - r);
  dn_of_state = dn * r;
  return dh * z;
}

}  // namespace crema::gru

#endif  // CREMA_OPS_SEQUENCES_GRU_FORMULAS_H_
