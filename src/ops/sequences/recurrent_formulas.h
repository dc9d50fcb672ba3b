// The arithmetic that recurrent layers share, on the CPU and in kernels of a GPU; names as in
// ops/sequences/recurrent.h.
#ifndef CREMA_OPS_SEQUENCES_RECURRENT_FORMULAS_H_
#define CREMA_OPS_SEQUENCES_RECURRENT_FORMULAS_H_

#include "ops/arrays/functors.h"

namespace crema::recurrent {

// A state that is dropped must not count, not even where it is infinite.
CREMA_FORMULA float Kept(float continuation, float state) { return continuation == 0.0f ? 0.0f : continuation * state; }

}  // namespace crema::recurrent

#endif  // CREMA_OPS_SEQUENCES_RECURRENT_FORMULAS_H_
