#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "ops/losses/class_centers.h"

namespace crema::cuda {

namespace {

// A block has the class of the vector that it is for, unless an earlier vector is of that class, too; its threads have
// elements.
__global__ void __launch_bounds__(kThreads)
    SumDifferences(EmbedProblem problem, float weight, const float* factor, const float* label, const float* x,
                   const float* centers, float* gradient) {
  for (int64_t i = blockIdx.x; i < problem.indices; i += gridDim.x) {
    const float own = label[i];
    if (!IsRow(problem, own)) continue;
    int earlier = 0;
    for (int64_t j = threadIdx.x; j < i; j += kThreads) earlier += label[j] == own;
    if (SumBlock(earlier) > 0) continue;
    const int64_t row = static_cast<int64_t>(own);
    for (int64_t k = threadIdx.x; k < problem.width; k += kThreads) {
      const float center = centers[row * problem.width + k];
      float sum = 0;
      int64_t count = 0;
      for (int64_t j = i; j < problem.indices; ++j) {
        if (label[j] != own) continue;
        ++count;
        sum += center - x[j * problem.width + k];
      }
      gradient[row * problem.width + k] = sum * (weight * *factor / static_cast<float>(1 + count));
    }
  }
}

}  // namespace

void CudaOperations::CenterGradient(const EmbedProblem& problem, float weight, const float* factor, const float* label,
                                    const float* x, const float* centers, float* gradient) {
  Fill(0, Tensor(reinterpret_cast<std::byte*>(gradient), {Shape{problem.rows * problem.width}}));
  if (problem.indices <= 0 || problem.width <= 0) return;
  Launch(queue(), BlocksFor(queue(), problem.indices, 1), kThreads, SumDifferences, problem, weight, factor, label, x,
         centers, gradient);
}

}  // namespace crema::cuda
