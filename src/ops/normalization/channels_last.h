// Channel arithmetic where the channels are the densest axis. Rows are taken several at a time as one row of at least
// kLanes values, whose coefficients are repeated likewise: so vectors are full for any number of channels.
#ifndef CREMA_OPS_NORMALIZATION_CHANNELS_LAST_H_
#define CREMA_OPS_NORMALIZATION_CHANNELS_LAST_H_

#include "ops/normalization/channels.h"

namespace crema::channels_last {

size_t Workspace(const ChannelGrid& grid);
void Moments(const ChannelGrid& grid, const void* x, float* mean, float* variance, std::byte* workspace);
void Affine(const ChannelGrid& grid, const ChannelAffine& map, std::byte* workspace);
void GradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const float* mean, float* sum,
                  float* product, std::byte* workspace);
void GradientMap(const ChannelGrid& grid, const ChannelGradientMap& map, std::byte* workspace);

}  // namespace crema::channels_last

#endif  // CREMA_OPS_NORMALIZATION_CHANNELS_LAST_H_
