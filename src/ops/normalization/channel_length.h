// The Euclidean length of the channels of each place, plain f32 in CPU memory.
#ifndef CREMA_OPS_NORMALIZATION_CHANNEL_LENGTH_H_
#define CREMA_OPS_NORMALIZATION_CHANNEL_LENGTH_H_

#include "ops/losses/softmax.h"

namespace crema {

// y[outer][inner] = the root of the sum of x^2 over the classes. Threaded; allocates nothing.
void ChannelLengthForward(const ClassAxis& axis, const float* x, float* y);
// dx = dy * x / y, and 0 where y is.
void ChannelLengthBackward(const ClassAxis& axis, const float* x, const float* y, const float* dy, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_CHANNEL_LENGTH_H_
