#include "cuda/channel_tiles.h"
#include "cuda/channels.h"
#include "cuda/operations.h"
#include "ops/functors.h"

namespace crema::cuda {

namespace {

// A map of numbers with coefficients of their channel: kWidth numbers from index `at` on, the coefficients of number k
// in coefficients[k * kStep].
template <typename Number>
struct Affine {
  struct Coefficients {
    float mean, scale, shift;
  };

  const Number* x;
  const float *mean, *scale, *shift;
  const Number* addend;
  bool relu;
  Number* y;

  __device__ Coefficients Of(int64_t channel) const {
    return {mean ? mean[channel] : 0.0f, scale ? scale[channel] : 1.0f, shift ? shift[channel] : 0.0f};
  }
  template <int kWidth, int kStep>
  __device__ void Run(int64_t at, const Coefficients* coefficients) const {
    float value[kWidth];
    LoadNumbers<kWidth>(x + at, value);
    for (int k = 0; k < kWidth; ++k) {
      const Coefficients& c = coefficients[k * kStep];
      value[k] = (value[k] - c.mean) * c.scale + c.shift;
    }
    if (addend) {
      float added[kWidth];
      LoadNumbers<kWidth>(addend + at, added);
      for (int k = 0; k < kWidth; ++k) value[k] += added[k];
    }
    if (relu) {
      for (int k = 0; k < kWidth; ++k) value[k] = formula::Relu()(value[k]);
    }
    StoreNumbers<kWidth>(value, y + at);
  }
};

template <typename Number>
struct GradientMap {
  struct Coefficients {
    float a, b, c, mean;
  };

  const Number *dy, *y, *x;
  const float *mean, *a, *b, *c;
  Number *dx, *masked;

  __device__ Coefficients Of(int64_t channel) const {
    Coefficients result = {};
    if (dx) result.a = a[channel];
    if (dx && b) {
      result.b = b[channel];
      result.c = c[channel];
      if (mean) result.mean = mean[channel];
    }
    return result;
  }
  template <int kWidth, int kStep>
  __device__ void Run(int64_t at, const Coefficients* coefficients) const {
    float g[kWidth];
    LoadNumbers<kWidth>(dy + at, g);
    if (y) {
      float top[kWidth];
      LoadNumbers<kWidth>(y + at, top);
      for (int k = 0; k < kWidth; ++k) g[k] = formula::ReluGradient()(g[k], top[k]);
    }
    if (dx) {
      float value[kWidth];
      if (b) {
        LoadNumbers<kWidth>(x + at, value);
        for (int k = 0; k < kWidth; ++k) {
          const Coefficients& of = coefficients[k * kStep];
          value[k] = of.a * g[k] + (of.b * (value[k] - of.mean) + of.c);
        }
      } else {
        for (int k = 0; k < kWidth; ++k) value[k] = coefficients[k * kStep].a * g[k];
      }
      StoreNumbers<kWidth>(value, dx + at);
    }
    if (masked) StoreNumbers<kWidth>(g, masked + at);
  }
};

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

template <int kWidth, bool kPlanes, typename Map>
void RunMap(const Queue& queue, const ChannelGrid& grid, const Map& map) {
  if (grid.count() == 0) return;
  const ChannelTiles tiles = MapTiles(queue, grid, kWidth);
  if constexpr (kPlanes) {
    const int64_t pieces = grid.count() / kWidth;
    Launch(queue, BlocksFor(queue, pieces), kThreads, MapPlanes<kWidth, Map>, pieces, tiles.run, grid.channels, map);
  } else {
    Launch(queue, tiles.blocks(), tiles.threads(), MapRows<kWidth, Map>, tiles, map);
  }
}

}  // namespace

void MapChannels(const Queue& queue, const ChannelGrid& grid, const ChannelAffine& map) {
  const bool aligned = IsPackAligned(map.x) && IsPackAligned(map.addend) && IsPackAligned(map.y);
  WithWidth(grid, aligned, [&](auto* number, auto width, auto planes) {
    using Number = std::remove_pointer_t<decltype(number)>;
    RunMap<decltype(width)::value, decltype(planes)::value>(
        queue, grid,
        Affine<Number>{static_cast<const Number*>(map.x), map.mean, map.scale, map.shift,
                       static_cast<const Number*>(map.addend), map.relu, static_cast<Number*>(map.y)});
  });
}

void CudaOperations::ChannelAffine(const ChannelGrid& grid, const crema::ChannelAffine& map, std::byte* workspace) {
  MapChannels(queue(), grid, map);
}

void CudaOperations::ChannelGradientMap(const ChannelGrid& grid, const crema::ChannelGradientMap& map,
                                        std::byte* workspace) {
  const bool aligned = IsPackAligned(map.g.dy) && IsPackAligned(map.g.y) && (!map.b || IsPackAligned(map.x)) &&
                       IsPackAligned(map.dx) && IsPackAligned(map.masked);
  WithWidth(grid, aligned, [&](auto* number, auto width, auto planes) {
    using Number = std::remove_pointer_t<decltype(number)>;
    RunMap<decltype(width)::value, decltype(planes)::value>(
        queue(), grid,
        GradientMap<Number>{static_cast<const Number*>(map.g.dy), static_cast<const Number*>(map.g.y),
                            static_cast<const Number*>(map.x), map.mean, map.a, map.b, map.c,
                            static_cast<Number*>(map.dx), static_cast<Number*>(map.masked)});
  });
}

}  // namespace crema::cuda
