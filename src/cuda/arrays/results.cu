#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

__global__ void AddLossKernel(float weight, int64_t n, const float* x, bool add, double* total) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  sum = SumBlock(sum);
  if (threadIdx.x == 0) *total = weight * sum + (add ? *total : 0);
}

__global__ void CountNonFinite(int64_t n, const float* x, int* count) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  int found = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) found |= !(x[i] - x[i] == 0);
  if (found) atomicAdd(count, 1);
}

}  // namespace

void CudaOperations::AddLoss(float weight, int64_t n, const float* x, bool add, double* total) {
  Launch(queue(), 1, kThreads, AddLossKernel, weight, n, x, add, total);
}

bool CudaOperations::HasNonFinite(int64_t n, const float* x) {
  const Buffer count(gpu_, sizeof(int));
  int found = 0;
  gpu_.CopyIn(&found, count.data(), sizeof found);
  if (n > 0) {
    Launch(queue(), BlocksFor(queue(), n), kThreads, CountNonFinite, n, x, reinterpret_cast<int*>(count.data()));
  }
  gpu_.CopyOut(count.data(), &found, sizeof found);
  return found > 0;
}

}  // namespace crema::cuda
