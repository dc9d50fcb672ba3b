// Maps of the numbers of a grid of channels (ops/normalization/channels.h), one by one, with coefficients of their
// channel.
//
// A Map is a function object:
//   Coefficients                              of a channel
//   Coefficients Of(channel)
//   void Run<width, step>(at, coefficients)   on `width` numbers from index `at` on, those of number k being
//                                             coefficients[k * step]
#ifndef CREMA_CUDA_NORMALIZATION_CHANNEL_MAPS_H_
#define CREMA_CUDA_NORMALIZATION_CHANNEL_MAPS_H_

#include "cuda/normalization/channel_tiles.h"

namespace crema::cuda {

namespace internal {

template <int kWidth, typename Map>
__global__ void __launch_bounds__(kThreads) MapRows(ChannelTiles tiles, Map map) {
  const int64_t column = int64_t{blockIdx.x} * tiles.across + threadIdx.x % tiles.across;
  if (column >= tiles.columns) return;
  typename Map::Coefficients coefficients[kWidth];
  for (int k = 0; k < kWidth; ++k) coefficients[k] = map.Of(column * kWidth + k);
  const int64_t step = int64_t{tiles.chunks} * tiles.along;
  for (int64_t line = int64_t{blockIdx.y} * tiles.along + threadIdx.x / tiles.across; line < tiles.lines;
       line += step) {
    map.template Run<kWidth, 1>((line * tiles.columns + column) * kWidth, coefficients);
  }
}

template <int kWidth, typename Map>
__global__ void __launch_bounds__(kThreads) MapPlanes(int64_t pieces, int64_t run, int64_t channels, Map map) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t piece_step = step % run, channel_step = step / run % channels;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  int64_t piece = i % run, channel = i / run % channels;  // kept by addition: divisions are slow
  for (; i < pieces; i += step) {
    const typename Map::Coefficients coefficients = map.Of(channel);
    map.template Run<kWidth, 0>(i * kWidth, &coefficients);
    piece += piece_step;
    channel += channel_step;
    if (piece >= run) {
      piece -= run;
      ++channel;
    }
    if (channel >= channels) channel -= channels;
  }
}

}  // namespace internal

// Issues the map. kWidth and kPlanes: of WithWidth.
template <int kWidth, bool kPlanes, typename Map>
void RunMap(const Queue& queue, const ChannelGrid& grid, const Map& map) {
  if (grid.count() == 0) return;
  const ChannelTiles tiles = MapTiles(queue, grid, kWidth);
  if constexpr (kPlanes) {
    const int64_t pieces = grid.count() / kWidth;
    Launch(queue, BlocksFor(queue, pieces), kThreads, internal::MapPlanes<kWidth, Map>, pieces, tiles.run,
           grid.channels, map);
  } else {
    Launch(queue, tiles.blocks(), tiles.threads(), internal::MapRows<kWidth, Map>, tiles, map);
  }
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_NORMALIZATION_CHANNEL_MAPS_H_
