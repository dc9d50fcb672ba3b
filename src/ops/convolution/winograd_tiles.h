// The transforms of ops/convolution/winograd.h on tiles of images with channels last, and on kernels that lie likewise.
#ifndef CREMA_OPS_CONVOLUTION_WINOGRAD_TILES_H_
#define CREMA_OPS_CONVOLUTION_WINOGRAD_TILES_H_

#include <cstdint>

namespace crema {

// Where the transformed values of a tile lie: channel c of point i (row by row) at
// data[i * points + c / 16 * chunks + c % 16].
struct WinogradPoints {
  float* data;
  int64_t points, chunks;
};

// What becomes of outputs before they are stored: x + bias[c] (if not null), plus what is there (with `add`), and below
// zero times slope.
struct WinogradEpilogue {
  const float* bias = nullptr;
  bool add = false;
  float slope = 1;
};

// For F(m x m, r x r), one tile of t x t inputs at a time, on the calling thread. pixels: the first of `channels`
// numbers of each pixel of the tile, row by row; of outputs those that are null lie beyond the image and are not
// stored. taps: the same for the r x r taps of a kernel.
struct WinogradTransforms {
  int tile, outputs, taps;                                                                               // t, m, r
  void (*source)(const float* const* pixels, int64_t channels, const WinogradPoints& to);                // t^2
  void (*destination_gradient)(const float* const* pixels, int64_t channels, const WinogradPoints& to);  // m^2
  void (*destination)(const WinogradPoints& from, int64_t channels, const WinogradEpilogue& epilogue,
                      float* const* pixels);  // m^2
  void (*kernel)(const float* const* taps, int64_t channels, const WinogradPoints& to);
  void (*kernel_gradient)(const WinogradPoints& from, int64_t channels, float* const* taps);
};

// With the instructions of this machine: r = 3 with m of 2 or 4, r = 5 with m = 2.
const WinogradTransforms& WinogradTransformsFor(int m, int r);

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_WINOGRAD_TILES_H_
