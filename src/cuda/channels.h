// Affine maps by channel (ops/channels.h) on a GPU.
#ifndef CREMA_CUDA_CHANNELS_H_
#define CREMA_CUDA_CHANNELS_H_

#include "cuda/launch.h"
#include "ops/channels.h"

namespace crema::cuda {

void MapChannels(const Queue& queue, const ChannelGrid& grid, const ChannelAffine& map);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CHANNELS_H_
