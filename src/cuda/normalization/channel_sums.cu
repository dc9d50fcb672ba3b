#include "cuda/normalization/channel_sums.h"
#include "cuda/operations.h"
#include "ops/arrays/functors.h"
#include "ops/normalization/batch_norm_formulas.h"

namespace crema::cuda {

namespace {

template <typename Number, bool kProduct>
struct GradientSum {
  static constexpr int kValues = kProduct ? 2 : 1;
  struct State {
    float values[kValues];  // the sum, the product
  };
  struct Running {
    float mean;
    State state;
  };
  template <int kWidth>
  struct Loaded {
    float g[kWidth], x[kProduct ? kWidth : 1];
  };

  const Number *dy, *y, *x;
  const float* mean;
  GradientResults results;

  __device__ Running Begin(int64_t channel, int64_t) const {
    Running running = {};
    if (kProduct && mean) running.mean = mean[channel];
    return running;
  }
  template <int kWidth>
  __device__ Loaded<kWidth> Load(int64_t at) const {
    Loaded<kWidth> loaded = {};
    LoadNumbers<kWidth>(dy + at, loaded.g);
    if (y) {
      float top[kWidth];
      LoadNumbers<kWidth>(y + at, top);
      for (int k = 0; k < kWidth; ++k) loaded.g[k] = formula::ReluGradient()(loaded.g[k], top[k]);
    }
    if constexpr (kProduct) LoadNumbers<kWidth>(x + at, loaded.x);
    return loaded;
  }
  template <int kWidth>
  __device__ void Add(const Loaded<kWidth>& loaded, Running* running) const {
    for (int k = 0; k < kWidth; ++k) {
      running[k].state.values[0] += loaded.g[k];
      if constexpr (kProduct) running[k].state.values[1] += loaded.g[k] * (loaded.x[k] - running[k].mean);
    }
  }
  __device__ State End(const Running& running, int64_t) const { return running.state; }
  static __device__ State Combine(State a, const State& b) {
    for (int v = 0; v < kValues; ++v) a.values[v] += b.values[v];
    return a;
  }
  __device__ void Finish(int64_t channel, const State& state) const {
    const float sum = state.values[0], product = kProduct ? state.values[kValues - 1] : 0.0f;
    if (results.sum) results.sum[channel] = sum;
    if (results.product) results.product[channel] = product;
    if (results.batch_norm.a) batch_norm::BackwardCoefficients(results.norm, results.batch_norm, channel, sum, product);
  }
};

// How many numbers, their mean, and the sum of their squared deviations from it.
//
// A thread adds up differences from the first number that it sees, and their squares. Cancellation cannot hurt: that
// number is one of those whose deviations count, so the error grows with how many they are, and those are few.
template <typename Number>
struct MomentSum {
  static constexpr int kValues = 3;
  struct State {
    float values[kValues];
  };
  struct Running {
    float first, sum, squares;
  };
  template <int kWidth>
  struct Loaded {
    float x[kWidth];
  };

  const Number* x;
  BatchNormScalars norm;
  BatchNormForward results;

  __device__ Running Begin(int64_t, int64_t first) const {
    return {first < 0 ? 0.0f : static_cast<float>(x[first]), 0.0f, 0.0f};
  }
  template <int kWidth>
  __device__ Loaded<kWidth> Load(int64_t at) const {
    Loaded<kWidth> loaded;
    LoadNumbers<kWidth>(x + at, loaded.x);
    return loaded;
  }
  template <int kWidth>
  __device__ void Add(const Loaded<kWidth>& loaded, Running* running) const {
    for (int k = 0; k < kWidth; ++k) {
      const float difference = loaded.x[k] - running[k].first;
      running[k].sum += difference;
      running[k].squares += difference * difference;
    }
  }
  __device__ State End(const Running& running, int64_t n) const {
    if (n == 0) return {{0.0f, 0.0f, 0.0f}};
    const float count = static_cast<float>(n), mean_difference = running.sum / count;
    const float squares = running.squares - running.sum * mean_difference;
    return {{count, running.first + mean_difference, squares < 0.0f ? 0.0f : squares}};
  }
  // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
  static __device__ State Combine(const State& a, const State& b) {
    const float count = a.values[0] + b.values[0];
    if (count == 0.0f) return a;
    const float share = b.values[0] / count, delta = b.values[1] - a.values[1];
    return {{count, a.values[1] + delta * share, a.values[2] + b.values[2] + delta * delta * a.values[0] * share}};
  }
  __device__ void Finish(int64_t channel, const State& state) const {
    const float mean = state.values[1], variance = state.values[2] / state.values[0];
    if (results.running.mean_sum) {
      batch_norm::UpdateRunning(norm, results.running, channel, mean, variance);
      if (channel == 0 && norm.running == RunningStatistics::kSums) batch_norm::UpdateWeight(norm, results.running);
    }
    batch_norm::ForwardCoefficients(norm, results, channel, mean, variance);
  }
};

}  // namespace

void SumGradients(const Queue& queue, const ChannelGrid& grid, const ChannelGradient& g, const void* x,
                  const float* mean, const GradientResults& results, float* parts) {
  const bool wants_product = results.product || results.batch_norm.product;
  const bool aligned = IsPackAligned(g.dy) && IsPackAligned(g.y) && (!wants_product || IsPackAligned(x));
  WithWidth(grid, aligned, [&](auto* number, auto width, auto planes) {
    using Number = std::remove_pointer_t<decltype(number)>;
    const auto run = [&](auto with_product) {
      const GradientSum<Number, decltype(with_product)::value> gradients = {
          static_cast<const Number*>(g.dy), static_cast<const Number*>(g.y), static_cast<const Number*>(x), mean,
          results};
      RunSum<decltype(width)::value, decltype(planes)::value>(queue, grid, gradients, parts);
    };
    if (wants_product) {
      run(std::true_type());
    } else {
      run(std::false_type());
    }
  });
}

size_t CudaOperations::ChannelWorkspace(const ChannelGrid& grid) {
  return static_cast<size_t>(PartFloats(queue(), grid, 3)) * sizeof(float);
}

void CudaOperations::ChannelGradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x,
                                         const float* mean, float* sum, float* product, std::byte* workspace) {
  SumGradients(queue(), grid, g, x, mean, {.sum = sum, .product = product}, reinterpret_cast<float*>(workspace));
}

void CudaOperations::BatchNormFromBatch(const ChannelGrid& grid, const void* x, const BatchNormScalars& norm,
                                        const BatchNormForward& arrays, std::byte* workspace) {
  WithWidth(grid, IsPackAligned(x), [&](auto* number, auto width, auto planes) {
    using Number = std::remove_pointer_t<decltype(number)>;
    const MomentSum<Number> moments = {static_cast<const Number*>(x), norm, arrays};
    RunSum<decltype(width)::value, decltype(planes)::value>(queue(), grid, moments,
                                                            reinterpret_cast<float*>(workspace));
  });
  // All channels divide by this weight.
  if (!arrays.running.mean_sum || norm.running != RunningStatistics::kUnitWeight) return;
  ForEach(queue(), 1, [=] __device__(int64_t) { batch_norm::UpdateWeight(norm, arrays.running); });
}

void CudaOperations::BatchNormGradients(const ChannelGrid& grid, const ChannelGradient& g, const void* x,
                                        const BatchNormScalars& norm, const BatchNormBackward& arrays,
                                        std::byte* workspace) {
  if (arrays.sum) {
    return SumGradients(queue(), grid, g, x, arrays.mean, {.norm = norm, .batch_norm = arrays},
                        reinterpret_cast<float*>(workspace));
  }
  ForEach(queue(), norm.channels,
          [=] __device__(int64_t c) { batch_norm::BackwardCoefficients(norm, arrays, c, 0.0f, 0.0f); });
}

}  // namespace crema::cuda
