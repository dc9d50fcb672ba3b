// The channels of each place by the largest of them, plain f32 in CPU memory.
#ifndef CREMA_OPS_NORMALIZATION_CHANNEL_PEAKS_H_
#define CREMA_OPS_NORMALIZATION_CHANNEL_PEAKS_H_

#include "ops/losses/softmax.h"

namespace crema {

// y = exp(x - the largest x of the place). Threaded; allocates nothing. y may be x.
void ExpBelowPeak(const ClassAxis& axis, const float* x, float* y);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_CHANNEL_PEAKS_H_
