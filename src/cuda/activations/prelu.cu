#include "cuda/normalization/channel_maps.h"
#include "cuda/normalization/channel_sums.h"
#include "cuda/operations.h"
#include "ops/arrays/functors.h"

namespace crema::cuda {

namespace {

struct Slope {
  float value;
};

template <typename Number>
struct ForwardMap {
  using Coefficients = Slope;

  const Number* x;
  const float* slope;
  Number* y;

  __device__ Slope Of(int64_t channel) const { return {slope[channel]}; }
  template <int kWidth, int kStep>
  __device__ void Run(int64_t at, const Slope* slopes) const {
    float value[kWidth];
    LoadNumbers<kWidth>(x + at, value);
    for (int k = 0; k < kWidth; ++k) value[k] = formula::LeakyRelu{slopes[k * kStep].value}(value[k]);
    StoreNumbers<kWidth>(value, y + at);
  }
};

template <typename Number>
struct BackwardMap {
  using Coefficients = Slope;

  const Number *x, *dy;
  const float* slope;
  Number* dx;

  __device__ Slope Of(int64_t channel) const { return {slope[channel]}; }
  template <int kWidth, int kStep>
  __device__ void Run(int64_t at, const Slope* slopes) const {
    float value[kWidth], gradient[kWidth];
    LoadNumbers<kWidth>(x + at, value);
    LoadNumbers<kWidth>(dy + at, gradient);
    for (int k = 0; k < kWidth; ++k) {
      gradient[k] = formula::LeakyReluGradient{slopes[k * kStep].value}(gradient[k], value[k]);
    }
    StoreNumbers<kWidth>(gradient, dx + at);
  }
};

// The slopes' gradient and, from the same numbers, that of x where dx is not null.
template <typename Number>
struct BackwardSum {
  static constexpr int kValues = 1;
  struct State {
    float values[kValues];
  };
  struct Running {
    float slope;
    State state;
  };
  template <int kWidth>
  struct Loaded {
    int64_t at;
    float x[kWidth], dy[kWidth];
  };

  const Number *x, *dy;
  const float* slope;
  Number* dx;
  float* slope_gradient;

  __device__ Running Begin(int64_t channel, int64_t) const { return {slope[channel], {{0.0f}}}; }
  template <int kWidth>
  __device__ Loaded<kWidth> Load(int64_t at) const {
    Loaded<kWidth> loaded;
    loaded.at = at;
    LoadNumbers<kWidth>(x + at, loaded.x);
    LoadNumbers<kWidth>(dy + at, loaded.dy);
    return loaded;
  }
  template <int kWidth>
  __device__ void Add(const Loaded<kWidth>& loaded, Running* running) const {
    for (int k = 0; k < kWidth; ++k) {
      running[k].state.values[0] += formula::SlopeGradient()(loaded.dy[k], loaded.x[k]);
    }
    if (!dx) return;
    float gradient[kWidth];
    for (int k = 0; k < kWidth; ++k) {
      gradient[k] = formula::LeakyReluGradient{running[k].slope}(loaded.dy[k], loaded.x[k]);
    }
    StoreNumbers<kWidth>(gradient, dx + loaded.at);
  }
  __device__ State End(const Running& running, int64_t) const { return running.state; }
  static __device__ State Combine(const State& a, const State& b) { return {{a.values[0] + b.values[0]}}; }
  __device__ void Finish(int64_t channel, const State& state) const { slope_gradient[channel] = state.values[0]; }
};

}  // namespace

size_t CudaOperations::PreluWorkspace(const ChannelGrid& grid) {
  return static_cast<size_t>(PartFloats(queue(), grid, 1)) * sizeof(float);
}

void CudaOperations::PreluForward(const ChannelGrid& grid, const void* x, const float* slope, void* y,
                                  std::byte* workspace) {
  WithWidth(grid, IsPackAligned(x) && IsPackAligned(y), [&](auto* number, auto width, auto planes) {
    using Number = std::remove_pointer_t<decltype(number)>;
    RunMap<decltype(width)::value, decltype(planes)::value>(
        queue(), grid, ForwardMap<Number>{static_cast<const Number*>(x), slope, static_cast<Number*>(y)});
  });
}

void CudaOperations::PreluBackward(const ChannelGrid& grid, const void* x, const float* slope, const void* dy, void* dx,
                                   float* slope_gradient, std::byte* workspace) {
  WithWidth(grid, IsPackAligned(x) && IsPackAligned(dy) && IsPackAligned(dx),
            [&](auto* number, auto width, auto planes) {
              using Number = std::remove_pointer_t<decltype(number)>;
              constexpr int kWidth = decltype(width)::value;
              constexpr bool kPlanes = decltype(planes)::value;
              const Number *from = static_cast<const Number*>(x), *gradient = static_cast<const Number*>(dy);
              Number* to = static_cast<Number*>(dx);
              if (slope_gradient) {
                RunSum<kWidth, kPlanes>(queue(), grid, BackwardSum<Number>{from, gradient, slope, to, slope_gradient},
                                        reinterpret_cast<float*>(workspace));
              } else if (dx) {
                RunMap<kWidth, kPlanes>(queue(), grid, BackwardMap<Number>{from, gradient, slope, to});
              }
            });
}

}  // namespace crema::cuda
