// Sums over the numbers of each channel of a grid (ops/normalization/channels.h), in an order that depends on the grid
// and the GPU alone. Channels of many numbers are shared by several blocks, which leave parts that a second kernel
// combines.
//
// A Sum is a function object:
//   State { float values[kValues]; }     what is known about some numbers of a channel
//   Running                              the same while a thread adds numbers
//   Loaded<width>                        numbers on their way
//   Running Begin(channel, first)        for `first`, the index of the thread's first number; -1: it has none
//   Loaded<width> Load<width>(at)        of the numbers from index `at` on
//   void Add<width>(loaded, running)     adds each to one of `width` runnings
//   State End(running, n)                after n numbers
//   static State Combine(a, b)
//   void Finish(channel, state)          writes the result
#ifndef CREMA_CUDA_NORMALIZATION_CHANNEL_SUMS_H_
#define CREMA_CUDA_NORMALIZATION_CHANNEL_SUMS_H_

#include "cuda/normalization/channel_tiles.h"
#include "ops/normalization/batch_norm.h"

namespace crema::cuda {

// Floats of parts that a Sum of `values` needs at most.
inline int64_t PartFloats(const Queue& queue, const ChannelGrid& grid, int values) {
  int64_t most = 0;
  for (const int width : {1, PackWidth(grid.dtype)}) {
    if (width > 1 && !FitsPacks(grid, width)) continue;
    const ChannelTiles tiles = SumTiles(queue, grid, width);
    if (tiles.chunks > 1) most = std::max(most, tiles.chunks * grid.channels * values);
  }
  return most;
}

namespace internal {

// Combines the states of all lines into those of line 0, in shared memory; all threads of the block must call.
// states[(line * across + column) * kEntries + entry]
template <int kEntries, typename Sum>
__device__ void CombineLines(typename Sum::State* states, unsigned across, unsigned along, unsigned column,
                             unsigned line, bool inside) {
  __syncthreads();
  for (unsigned left = along; left > 1;) {
    const unsigned half = (left + 1) / 2;
    if (inside && line + half < left) {
      for (int k = 0; k < kEntries; ++k) {
        typename Sum::State& into = states[(line * across + column) * kEntries + k];
        into = Sum::Combine(into, states[((line + half) * across + column) * kEntries + k]);
      }
    }
    __syncthreads();
    left = half;
  }
}

template <int kWidth, bool kPlanes, typename Sum>
__global__ void __launch_bounds__(kThreads) SumKernel(ChannelTiles tiles, Sum sum, float* parts) {
  using State = typename Sum::State;
  constexpr int kEntries = kPlanes ? 1 : kWidth;
  constexpr int kAtOnce = 4;  // loads that are under way together
  __shared__ State states[kThreads * kEntries];
  const unsigned line = kPlanes ? threadIdx.x % tiles.along : threadIdx.x / tiles.across;
  const unsigned column = kPlanes ? threadIdx.x / tiles.along : threadIdx.x % tiles.across;
  const int64_t at_column = int64_t{blockIdx.x} * tiles.across + column;
  const int64_t channel = at_column * kEntries;
  const bool inside = at_column < tiles.columns;
  State* const own = states + (line * tiles.across + column) * kEntries;
  if (inside) {
    const int64_t begin = tiles.lines * blockIdx.y / tiles.chunks + line;
    const int64_t end = tiles.lines * (blockIdx.y + 1) / tiles.chunks;
    const int64_t visits = begin < end ? (end - begin + tiles.along - 1) / tiles.along : 0;
    LineWalk<kWidth, kPlanes> walk(tiles, at_column, begin, tiles.along);
    typename Sum::Running running[kWidth];
    for (int k = 0; k < kWidth; ++k) {
      running[k] = sum.Begin(kPlanes ? channel : channel + k, visits > 0 ? walk.at() + k : -1);
    }
    int64_t visit = 0;
    for (; visit + kAtOnce <= visits; visit += kAtOnce) {
      typename Sum::template Loaded<kWidth> loaded[kAtOnce];
      for (int i = 0; i < kAtOnce; ++i, walk.Next()) loaded[i] = sum.template Load<kWidth>(walk.at());
      for (int i = 0; i < kAtOnce; ++i) sum.template Add<kWidth>(loaded[i], running);
    }
    for (; visit < visits; ++visit, walk.Next()) {
      sum.template Add<kWidth>(sum.template Load<kWidth>(walk.at()), running);
    }
    if constexpr (kPlanes) {
      State state = sum.End(running[0], visits);
      for (int k = 1; k < kWidth; ++k) state = Sum::Combine(state, sum.End(running[k], visits));
      own[0] = state;
    } else {
      for (int k = 0; k < kWidth; ++k) own[k] = sum.End(running[k], visits);
    }
  }
  CombineLines<kEntries, Sum>(states, tiles.across, tiles.along, column, line, inside);
  if (!inside || line > 0) return;
  for (int k = 0; k < kEntries; ++k) {
    if (tiles.chunks == 1) {
      sum.Finish(channel + k, own[k]);
      continue;
    }
    const int64_t channels = tiles.columns * kEntries;
    for (int v = 0; v < Sum::kValues; ++v) {
      parts[(int64_t{v} * tiles.chunks + blockIdx.y) * channels + channel + k] = own[k].values[v];
    }
  }
}

inline constexpr unsigned kPartsAcross = 8, kPartsAlong = kThreads / kPartsAcross;

template <typename Sum>
__global__ void __launch_bounds__(kThreads)
    CombineKernel(int64_t channels, int64_t chunks, Sum sum, const float* parts) {
  using State = typename Sum::State;
  __shared__ State states[kThreads];
  const unsigned column = threadIdx.x % kPartsAcross, line = threadIdx.x / kPartsAcross;
  const int64_t channel = int64_t{blockIdx.x} * kPartsAcross + column;
  const bool inside = channel < channels;
  const unsigned along = chunks < kPartsAlong ? static_cast<unsigned>(chunks) : kPartsAlong;
  if (inside && line < along) {
    const auto part = [&](int64_t chunk) {
      State state;
      for (int v = 0; v < Sum::kValues; ++v) state.values[v] = parts[(v * chunks + chunk) * channels + channel];
      return state;
    };
    State state = part(line);
    int64_t chunk = line + along;
    for (; chunk + 3 * int64_t{along} < chunks; chunk += 4 * int64_t{along}) {
      const State a = part(chunk), b = part(chunk + along), c = part(chunk + 2 * along), d = part(chunk + 3 * along);
      state = Sum::Combine(state, Sum::Combine(Sum::Combine(a, b), Sum::Combine(c, d)));
    }
    for (; chunk < chunks; chunk += along) state = Sum::Combine(state, part(chunk));
    states[threadIdx.x] = state;
  }
  CombineLines<1, Sum>(states, kPartsAcross, along, column, line, inside);
  if (inside && line == 0) sum.Finish(channel, states[threadIdx.x]);
}

}  // namespace internal

// Issues the sum. kWidth and kPlanes: of WithWidth. `parts`: PartFloats.
template <int kWidth, bool kPlanes, typename Sum>
void RunSum(const Queue& queue, const ChannelGrid& grid, const Sum& sum, float* parts) {
  if (grid.channels == 0) return;
  const ChannelTiles tiles = SumTiles(queue, grid, kWidth);
  Launch(queue, tiles.blocks(), tiles.threads(), internal::SumKernel<kWidth, kPlanes, Sum>, tiles, sum, parts);
  if (tiles.chunks == 1) return;
  Launch(queue, static_cast<unsigned>(Share(grid.channels, internal::kPartsAcross)), kThreads,
         internal::CombineKernel<Sum>, grid.channels, int64_t{tiles.chunks}, sum, parts);
}

// What becomes of the sums of ops/normalization/channels.h. Null: not wanted.
struct GradientResults {
  float *sum = nullptr, *product = nullptr;
  BatchNormScalars norm = {};
  BatchNormBackward batch_norm = {};  // without an `a`: not wanted
};

// `parts`: PartFloats of 2 values, of 1 without a product.
void SumGradients(const Queue& queue, const ChannelGrid& grid, const ChannelGradient& g, const void* x,
                  const float* mean, const GradientResults& results, float* parts);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_NORMALIZATION_CHANNEL_SUMS_H_
