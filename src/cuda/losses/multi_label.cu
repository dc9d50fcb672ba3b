#include "cuda/arrays/sums.h"
#include "cuda/operations.h"
#include "ops/losses/multi_label_formulas.h"

namespace crema::cuda {

namespace {

struct CountedLabels {
  multi_label::Counted counted;
  const float *scores, *label;
  __device__ double operator()(int64_t i) const { return counted(scores[i], label[i]); }
};

struct KeepCounted {
  double* kept;
  __device__ void operator()(double sum) const { *kept = sum; }
};

}  // namespace

void CudaOperations::MeasureMultiLabel(int64_t count, const float* scores, const float* label, float* measures) {
  constexpr int kCounts = 4;
  auto* counts = Scratch<double>((kCounts + kSumBlocks) * sizeof(double));
  for (int i = 0; i < kCounts; ++i) {
    SumTerms(queue(), count, CountedLabels{{i < 2, i % 2 == 1}, scores, label}, KeepCounted{counts + i},
             counts + kCounts);
  }
  ForEach(queue(), 1, [=] __device__(int64_t) {
    multi_label::Measure({counts[0], counts[1], counts[2], counts[3]}, measures);
  });
}

}  // namespace crema::cuda
