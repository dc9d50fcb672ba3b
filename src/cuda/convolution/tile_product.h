// Products of two tiles of matrices that lie in shared memory, a square of the result for each thread.
#ifndef CREMA_CUDA_CONVOLUTION_TILE_PRODUCT_H_
#define CREMA_CUDA_CONVOLUTION_TILE_PRODUCT_H_

#include "cuda/arrays/numbers.h"
#include "cuda/device/launch.h"

namespace crema::cuda {

constexpr int kTileSide = 4;  // of the square that one thread sums up
static_assert(kTileSide == Pack<float>::kWidth);

// total[r][c] += the sum over k of left[k][row + r] * right[k][column + c]. Tiles are aligned to 16 bytes, and so are
// their rows; row and column are multiples of kTileSide.
template <int kDepth, int kRows, int kColumns>
__device__ void AddTileProduct(const float (&left)[kDepth][kRows], const float (&right)[kDepth][kColumns], int row,
                               int column, float (&total)[kTileSide][kTileSide]) {
  static_assert(kRows % kTileSide == 0 && kColumns % kTileSide == 0);
  for (int k = 0; k < kDepth; ++k) {
    const auto rows = *reinterpret_cast<const Pack<float>*>(&left[k][row]);
    const auto columns = *reinterpret_cast<const Pack<float>*>(&right[k][column]);
    CREMA_UNROLL
    for (int r = 0; r < kTileSide; ++r) {
      CREMA_UNROLL
      for (int c = 0; c < kTileSide; ++c) total[r][c] += rows.values[r] * columns.values[c];
    }
  }
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_TILE_PRODUCT_H_
