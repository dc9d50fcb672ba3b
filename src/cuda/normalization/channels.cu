#include "cuda/normalization/channel_maps.h"
#include "cuda/normalization/channels.h"
#include "cuda/operations.h"
#include "ops/arrays/functors.h"

namespace crema::cuda {

namespace {

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
