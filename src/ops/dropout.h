// Dropout (Srivastava et al., JMLR 2014), scaled while training so that nothing is left to do when testing.
#ifndef CREMA_OPS_DROPOUT_H_
#define CREMA_OPS_DROPOUT_H_

#include <cstdint>

#include "base/random.h"

namespace crema {

// keep[i] is 0 with probability `ratio` (in [0, 1)), else 1, and y[i] = keep[i] ? x[i] / (1 - ratio) : 0. A pure
// function of the stream and i. y may be x. Number: float or BFloat16.
template <typename Number>
void DropoutForward(const RandomStream& stream, float ratio, int64_t n, const Number* x, uint8_t* keep, Number* y);
// dx[i] = keep[i] ? dy[i] / (1 - ratio) : 0. dx may be dy.
template <typename Number>
void DropoutBackward(float ratio, int64_t n, const Number* dy, const uint8_t* keep, Number* dx);

}  // namespace crema

#endif  // CREMA_OPS_DROPOUT_H_
