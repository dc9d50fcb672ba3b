// All pairs of the vectors of a batch, in GPU memory (see ops/losses/pairwise.h). For sources that hold kernels.
#ifndef CREMA_CUDA_LOSSES_PAIRWISE_H_
#define CREMA_CUDA_LOSSES_PAIRWISE_H_

#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/device/launch.h"
#include "ops/losses/pairwise.h"

namespace crema::cuda {

namespace internal {

// A warp for each pair.
template <typename Number>
__global__ void __launch_bounds__(kThreads) SquaredDistances(VectorPair<const Number> x, Number* distance) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32), count = x.count();
  for (int64_t at = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; at < count * count; at += step) {
    const int64_t i = at / count, j = at % count;
    if (j < i) continue;
    const Number *const a = x.At(i), *const b = x.At(j);
    double sum = 0;
    for (int64_t c = lane; c < x.width; c += 32) {
      const Number d = a[c] - b[c];
      sum += d * d;
    }
    sum = SumWarp(sum);
    if (lane > 0) continue;
    distance[i * count + j] = static_cast<Number>(sum);
    distance[j * count + i] = static_cast<Number>(sum);
  }
}

struct SumWeightedDifferences {
  VectorPair<const float> x;
  const float* weight;
  VectorPair<float> y;

  __device__ void operator()(int64_t at) const {
    int64_t i = at;
    const int64_t c = SplitOff(&i, x.width), count = x.count();
    float* const to = i < y.first_count ? y.first : y.second;
    if (!to) return;
    const float own = x.At(i)[c];
    float sum = 0;
    for (int64_t j = 0; j < count; ++j) {
      const float factor = weight[i * count + j];
      if (factor != 0.0f) sum += factor * (own - x.At(j)[c]);
    }
    y.At(i)[c] = sum;
  }
};

}  // namespace internal

inline void SquaredDistances(const Queue& queue, const VectorPair<const float>& x, float* distance) {
  const int64_t pairs = x.count() * x.count();
  if (pairs == 0) return;
  Launch(queue, BlocksFor(queue, pairs, kThreads / 32), kThreads, internal::SquaredDistances<float>, x, distance);
}

inline void SumWeightedDifferences(const Queue& queue, const VectorPair<const float>& x, const float* weight,
                                   const VectorPair<float>& y) {
  ForEach(queue, x.count() * x.width, internal::SumWeightedDifferences{x, weight, y});
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_LOSSES_PAIRWISE_H_
