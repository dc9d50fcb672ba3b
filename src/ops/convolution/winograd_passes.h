// The passes over images of convolutions by Winograd's filtering (ops/convolution/winograd.h), f32, channels last:
// transform tiles, multiply the matrices of every point, transform back.
#ifndef CREMA_OPS_CONVOLUTION_WINOGRAD_PASSES_H_
#define CREMA_OPS_CONVOLUTION_WINOGRAD_PASSES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ops/activations/activation.h"
#include "ops/convolution/winograd_tiles.h"

namespace crema {

// The sizes of a cross-correlation without stride, rows before columns. Channels and outputs are those of one group.
struct WinogradProblem {
  int64_t batch, groups, channels, outputs;
  std::array<int64_t, 2> source, destination, pad;
};

// Squares of m x m outputs that cover all images.
class WinogradTiles {
 public:
  WinogradTiles(int64_t batch, const std::array<int64_t, 2>& outputs, int64_t m);
  int64_t count() const { return count_; }

  // The pixels, row by row, of a square of images of `extents` with pixels `step` floats apart: `side` pixels wide, its
  // first `before` the tile's first output. `beyond` where the image ends.
  template <typename Float>
  std::array<Float*, 36> Square(Float* images, const std::array<int64_t, 2>& extents, int64_t step, int64_t tile,
                                int64_t side, const std::array<int64_t, 2>& before, Float* beyond) const {
    const int64_t image = tile / (rows_ * columns_), row = tile / columns_ % rows_ * m_ - before[0],
                  column = tile % columns_ * m_ - before[1];
    std::array<Float*, 36> pixels;
    for (int64_t i = 0; i < side; ++i) {
      for (int64_t j = 0; j < side; ++j) {
        const int64_t y = row + i, x = column + j;
        const bool inside = y >= 0 && y < extents[0] && x >= 0 && x < extents[1];
        pixels[i * side + j] = inside ? images + ((image * extents[0] + y) * extents[1] + x) * step : beyond;
      }
    }
    return pixels;
  }

 private:
  int64_t m_, rows_, columns_, count_;
};

// Where the taps of kernels lie: floats from one output to the next, one channel, one tap. Fastest where the first
// is 1.
struct WinogradTaps {
  int64_t output, channel, tap;
};

// destination = kernels over source. One at a time for each workspace; threaded.
class WinogradFilter {
 public:
  WinogradFilter(const WinogradProblem& problem, const WinogradTransforms& transforms);

  // Floats of the transformed kernels, and of the workspace.
  int64_t packed_floats() const { return p_.groups * points_ * packed_step_; }
  int64_t workspace_floats() const { return slots_ * points_ * (source_step_ + product_step_); }

  // Of a kernel with the problem's channels and outputs; of the mirrored transpose of one with p.outputs channels and
  // p.channels outputs, which makes a gradient of the destination one of the source.
  void Pack(const float* taps, const WinogradTaps& lie, float* packed) const;
  void PackMirrored(const float* taps, const WinogradTaps& lie, float* packed) const;

  // bias (null: none) is added, then what destination holds (`sum`), then comes the activation.
  void Run(const float* source, const float* packed, const float* bias, bool sum, const Activation& activation,
           float* destination, float* workspace) const;

 private:
  // Tiles [first, first + n) of a group.
  void RunTiles(int64_t group, int64_t first, int64_t n, const float* source, const float* packed, const float* bias,
                bool sum, const Activation& activation, float* destination, float* workspace) const;

  const WinogradProblem p_;
  const WinogradTransforms& t_;
  const int64_t points_;
  const WinogradTiles tiles_;
  const int64_t slots_, tiles_at_once_;
  const int64_t packed_step_, source_step_, product_step_;  // floats from one point to the next
  const std::vector<float> zeros_;                          // a pixel beyond the image
};

// The gradient of the kernels, from source and the destination's gradient: summed up in an order that does not depend
// on the number of threads. Threaded.
class WinogradKernelGradient {
 public:
  WinogradKernelGradient(const WinogradProblem& problem, const WinogradTransforms& transforms);

  int64_t workspace_floats() const { return points_ * (source_step_ + gradient_step_ + sum_step_); }
  // Overwrites taps.
  void Run(const float* source, const float* destination_gradient, float* taps, const WinogradTaps& lie,
           float* workspace) const;

 private:
  void AddTiles(int64_t group, int64_t first, int64_t n, const float* source, const float* destination_gradient,
                float* sums, float* workspace) const;

  const WinogradProblem p_;
  const WinogradTransforms& t_;
  const int64_t points_;
  const WinogradTiles tiles_;
  const int64_t tiles_at_once_;
  const int64_t source_step_, gradient_step_, sum_step_;
  const std::vector<float> zeros_;
};

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_WINOGRAD_PASSES_H_
