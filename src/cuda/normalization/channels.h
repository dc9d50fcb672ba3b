// Affine maps by channel (ops/normalization/channels.h) on a GPU.
#ifndef CREMA_CUDA_NORMALIZATION_CHANNELS_H_
#define CREMA_CUDA_NORMALIZATION_CHANNELS_H_

#include "cuda/device/launch.h"
#include "ops/normalization/channels.h"

namespace crema::cuda {

void MapChannels(const Queue& queue, const ChannelGrid& grid, const ChannelAffine& map);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_NORMALIZATION_CHANNELS_H_
