#include "ops/losses/pairwise.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for

CREMA_MULTIVERSION float SquaredDistance(int64_t n, const float* a, const float* b) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const float d = a[i] - b[i];
    sum += d * d;
  }
  return static_cast<float>(sum);
}

CREMA_MULTIVERSION void AddScaledDifference(int64_t n, float weight, const float* a, const float* b, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += weight * (a[i] - b[i]);
}

// Vectors that are compared with all others, worth waking a thread for.
int64_t GrainOf(int64_t count, int64_t width) { return std::max<int64_t>(1, kGrain / (count * width + 1)); }

}  // namespace

void SquaredDistances(const VectorPair<const float>& x, float* distance) {
  const int64_t n = x.count();
  ParallelFor(n, GrainOf(n, x.width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      distance[i * n + i] = 0;
      for (int64_t j = i + 1; j < n; ++j) {
        distance[i * n + j] = distance[j * n + i] = SquaredDistance(x.width, x.At(i), x.At(j));
      }
    }
  });
}

void SumWeightedDifferences(const VectorPair<const float>& x, const float* weight, const VectorPair<float>& y) {
  const int64_t n = x.count();
  ParallelFor(n, GrainOf(n, x.width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!(i < y.first_count ? y.first : y.second)) continue;
      float* const to = y.At(i);
      std::fill_n(to, y.width, 0.0f);
      for (int64_t j = 0; j < n; ++j) {
        if (weight[i * n + j] != 0) AddScaledDifference(x.width, weight[i * n + j], x.At(i), x.At(j), to);
      }
    }
  });
}

}  // namespace crema
