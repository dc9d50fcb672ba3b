// Axes in another order, with a conversion on the way.
#ifndef CREMA_CUDA_ARRAYS_AXIS_PERMUTATION_H_
#define CREMA_CUDA_ARRAYS_AXIS_PERMUTATION_H_

#include "cuda/arrays/lanes.h"
#include "cuda/device/launch.h"
#include "ops/arrays/axis_permutation.h"

namespace crema::cuda {

namespace internal {

constexpr int kTile = 32, kTileRows = 8;
constexpr int64_t kFew = 8;  // rows or columns that tiles would mostly miss

// Where the numbers of a place begin.
struct Place {
  int64_t source = 0, result = 0;
};
__device__ inline Place PlaceAt(const AxisPermutation& permutation, int64_t i) {
  Place place;
  for (int axis = 1; axis < permutation.axes(); ++axis) {
    if (!permutation.is_outer(axis)) continue;
    const int64_t at = SplitOff(&i, permutation.extent(axis));
    place.source += at * permutation.source_stride(axis);
    place.result += at * permutation.result_stride(axis);
  }
  return place;
}

// Tile by tile through shared memory, so that reads and writes both go along rows.
template <typename From, typename To>
__global__ void TransposeTiles(AxisPermutation permutation, const From* from, To* to, int64_t tiles_down,
                               int64_t tiles_across) {
  __shared__ float tile[kTile][kTile + 1];  // the odd stride keeps columns out of one bank
  const int64_t tiles = permutation.outer() * tiles_down * tiles_across;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t across = t % tiles_across * kTile, rest = t / tiles_across;
    const int64_t down = rest % tiles_down * kTile;
    const Place place = PlaceAt(permutation, rest / tiles_down);
    for (unsigned i = threadIdx.y; i < kTile; i += kTileRows) {
      const int64_t row = down + i, column = across + threadIdx.x;
      if (row < permutation.rows() && column < permutation.columns()) {
        tile[i][threadIdx.x] = from[place.source + row * permutation.source_stride() + column];
      }
    }
    __syncthreads();
    for (unsigned i = threadIdx.y; i < kTile; i += kTileRows) {
      const int64_t column = across + i, row = down + threadIdx.x;
      if (row < permutation.rows() && column < permutation.columns()) {
        to[place.result + column * permutation.result_stride() + row] = To(tile[threadIdx.x][i]);
      }
    }
    __syncthreads();  // before the next tile is read into it
  }
}

// Few rows or columns: a warp's reads and writes share cache lines anyway.
template <typename From, typename To>
struct MoveElement {
  AxisPermutation permutation;
  const From* from;
  To* to;

  __device__ void operator()(int64_t i) const {
    int64_t rest = i, source = 0;
    for (int axis = 0; axis < permutation.axes(); ++axis) {
      source += SplitOff(&rest, permutation.extent(axis)) * permutation.source_stride(axis);
    }
    to[i] = To(static_cast<float>(from[source]));
  }
};

}  // namespace internal

// For permutations that transpose.
template <typename From, typename To>
void Transpose(const Queue& queue, const AxisPermutation& permutation, const From* from, To* to) {
  using namespace internal;
  const int64_t rows = permutation.rows(), columns = permutation.columns();
  if (rows <= kFew || columns <= kFew) {
    return ForEach(queue, permutation.count(), MoveElement<From, To>{permutation, from, to});
  }
  const int64_t down = (rows + kTile - 1) / kTile, across = (columns + kTile - 1) / kTile;
  constexpr unsigned kThreadsOfTile = kTile * kTileRows;
  const unsigned blocks = BlocksFor(queue, permutation.outer() * down * across * kThreadsOfTile, kThreadsOfTile);
  Launch(queue, blocks, dim3(kTile, kTileRows), TransposeTiles<From, To>, permutation, from, to, down, across);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_AXIS_PERMUTATION_H_
