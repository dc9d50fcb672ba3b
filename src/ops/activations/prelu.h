// A ReLU whose slope below zero is learnt, for each channel or for all (He et al., "Delving Deep into Rectifiers",
// 2015).
#ifndef CREMA_OPS_ACTIVATIONS_PRELU_H_
#define CREMA_OPS_ACTIVATIONS_PRELU_H_

#include <cstddef>

#include "ops/normalization/channels.h"

namespace crema {

// Scratch bytes that each function below needs (aligned to 64 bytes). All run on the threads of OpenMP, allocate
// nothing, and give the same bits on any number of threads. With one slope for all, the grid has a single channel,
// whatever the layout.
size_t PreluWorkspace(const ChannelGrid& grid);

// y = x where x > 0, else slope[c] * x. y may lie over x.
void PreluForward(const ChannelGrid& grid, const void* x, const float* slope, void* y, std::byte* workspace);

// dx = dy where x > 0, else slope[c] * dy; slope_gradient[c] = the sum of dy * x where x <= 0. Either may be null; dx
// may lie over dy.
void PreluBackward(const ChannelGrid& grid, const void* x, const float* slope, const void* dy, void* dx,
                   float* slope_gradient, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATIONS_PRELU_H_
