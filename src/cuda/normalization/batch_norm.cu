#include "cuda/operations.h"
#include "ops/normalization/batch_norm_formulas.h"

namespace crema::cuda {

namespace {

__global__ void FoldKernel(BatchNormScalars norm, FoldedArrays arrays) {
  const float factor = batch_norm::RunningFactor(arrays.running);
  for (int64_t o = blockIdx.x; o < norm.channels; o += gridDim.x) {
    const float scale = batch_norm::FoldedScale(norm, arrays, factor, o);
    const int64_t first = o * arrays.width;
    for (int64_t i = threadIdx.x; i < arrays.width; i += blockDim.x) {
      arrays.folded_weights[first + i] = arrays.weights[first + i] * scale;
    }
    if (threadIdx.x == 0) arrays.folded_bias[o] = batch_norm::FoldedBias(arrays, factor, scale, o);
  }
}

}  // namespace

void CudaOperations::BatchNormFromRunning(const BatchNormScalars& norm, const BatchNormForward& arrays) {
  ForEach(queue(), norm.channels, [=] __device__(int64_t c) {
    batch_norm::CoefficientsFromRunning(norm, arrays, batch_norm::RunningFactor(arrays.running), c);
  });
}

void CudaOperations::FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) {
  if (norm.channels == 0) return;
  const unsigned threads = arrays.width < 128 ? 32 * static_cast<unsigned>((arrays.width + 31) / 32) : 128;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(norm.channels, int64_t{queue().multiprocessors} * 16));
  Launch(queue(), blocks, std::max(threads, 32u), FoldKernel, norm, arrays);
}

}  // namespace crema::cuda
