// Sums of any length on a GPU, in an order that depends on their length only.
#ifndef CREMA_CUDA_ARRAYS_SUMS_H_
#define CREMA_CUDA_ARRAYS_SUMS_H_

#include "cuda/arrays/reduce.h"
#include "cuda/device/launch.h"

namespace crema::cuda {

inline constexpr int64_t kSumBlocks = 1024;  // at most

namespace internal {

template <typename Term, typename Finish>
__global__ void __launch_bounds__(kThreads) SumKernel(int64_t n, Term term, Finish finish, double* parts) {
  double sum = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) sum += term(i);
  sum = SumBlock(sum);
  if (threadIdx.x > 0) return;
  if (gridDim.x == 1) {
    finish(sum);
  } else {
    parts[blockIdx.x] = sum;
  }
}

template <typename Finish>
__global__ void __launch_bounds__(kThreads) FinishSumKernel(unsigned blocks, const double* parts, Finish finish) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < blocks; i += blockDim.x) sum += parts[i];
  sum = SumBlock(sum);
  if (threadIdx.x == 0) finish(sum);
}

}  // namespace internal

// Calls finish(the sum of term(i) over i in [0, n)) in one thread. `term`, `finish`: __device__ function objects,
// copied. parts: scratch of kSumBlocks numbers.
template <typename Term, typename Finish>
void SumTerms(const Queue& queue, int64_t n, const Term& term, const Finish& finish, double* parts) {
  const auto blocks = static_cast<unsigned>(std::clamp<int64_t>(n / (4 * int64_t{kThreads}), 1, kSumBlocks));
  Launch(queue, blocks, kThreads, internal::SumKernel<Term, Finish>, n, term, finish, parts);
  if (blocks > 1) Launch(queue, 1, kThreads, internal::FinishSumKernel<Finish>, blocks, parts, finish);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_SUMS_H_
