// Mathematics by channel on tensors, in f32: moments, affine maps and their gradients. Batch normalisation (Ioffe and
// Szegedy, 2015), scales and biases are made of these.
#ifndef CREMA_OPS_NORMALIZATION_CHANNELS_H_
#define CREMA_OPS_NORMALIZATION_CHANNELS_H_

#include <cstddef>
#include <cstdint>

#include "crema/tensor.h"

namespace crema {

// A tensor seen as items of `channels` planes of `pixels` values; in layout kChannelsLast as items of `pixels` rows of
// `channels` values.
struct ChannelGrid {
  int64_t batch = 1, channels = 1, pixels = 1;
  Layout layout = Layout::kPlain;
  DType dtype = DType::kF32;  // or kBF16, where the layout is kChannelsLast: of x, y, addend, dy, dx and masked

  int64_t count() const { return batch * channels * pixels; }
  int64_t per_channel() const { return batch * pixels; }
};

// Scratch bytes that each function below needs (aligned to 64 bytes). All run on the threads of OpenMP, allocate
// nothing, and give the same bits on any number of threads.
size_t ChannelWorkspace(const ChannelGrid& grid);

// Mean and (biased) variance of each channel.
void ChannelMoments(const ChannelGrid& grid, const void* x, float* mean, float* variance, std::byte* workspace);

// y = scale[c] * (x - mean[c]) + shift[c], + addend where there is one, and, with relu, at least 0. A null mean, shift
// or addend is 0, a null scale 1. y may lie over x or addend.
struct ChannelAffine {
  const void* x = nullptr;
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  const void* addend = nullptr;
  bool relu = false;
  void* y = nullptr;
};
void RunChannelAffine(const ChannelGrid& grid, const ChannelAffine& map, std::byte* workspace);

// The gradient that arrives: dy, or, where y is given, dy where y > 0 and 0 elsewhere (a ReLU on top).
struct ChannelGradient {
  const void* dy = nullptr;
  const void* y = nullptr;
};

// sum[c] = the sum of g over the channel, product[c] = that of g * (x - mean[c]). A null mean is 0; with a null product
// x is not read.
void ChannelGradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const float* mean,
                         float* sum, float* product, std::byte* workspace);

// dx = a[c] * g + b[c] * (x - mean[c]) + c[c], and masked = g. b null: dx = a[c] * g, x is not read. dx or masked may
// be null; each may lie over dy, and dx over x.
struct ChannelGradientMap {
  ChannelGradient g;
  const void* x = nullptr;
  const float* mean = nullptr;
  const float *a = nullptr, *b = nullptr, *c = nullptr;
  void* dx = nullptr;
  void* masked = nullptr;
};
void RunChannelGradientMap(const ChannelGrid& grid, const ChannelGradientMap& map, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_CHANNELS_H_
