#include "ops/losses/class_centers.h"

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 32768;  // elements worth waking a thread for

// The classes whose first vector is among [begin, end).
CREMA_MULTIVERSION void SumDifferences(int64_t begin, int64_t end, const EmbedProblem& problem, float weight,
                                       const float* label, const float* x, const float* centers, float* gradient) {
  const int64_t width = problem.width;
  for (int64_t i = begin; i < end; ++i) {
    if (std::find(label, label + i, label[i]) != label + i) continue;
    const int64_t row = static_cast<int64_t>(label[i]);
    const float* center = centers + row * width;
    float* to = gradient + row * width;
    int64_t count = 0;
    for (int64_t j = i; j < problem.indices; ++j) {
      if (label[j] != label[i]) continue;
      ++count;
      const float* vector = x + j * width;
#pragma omp simd
      for (int64_t k = 0; k < width; ++k) to[k] += center[k] - vector[k];
    }
    const float share = weight / static_cast<float>(1 + count);
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) to[k] *= share;
  }
}

}  // namespace

void CenterGradient(const EmbedProblem& problem, float weight, const float* factor, const float* label, const float* x,
                    const float* centers, float* gradient) {
  ParallelFor(problem.rows * problem.width, kGrain, [&](int64_t begin, int64_t end) {
    std::memset(gradient + begin, 0, static_cast<size_t>(end - begin) * sizeof *gradient);
  });
  ParallelFor(problem.indices, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, problem.width)),
              [&](int64_t begin, int64_t end) {
                SumDifferences(begin, end, problem, weight * *factor, label, x, centers, gradient);
              });
}

}  // namespace crema
