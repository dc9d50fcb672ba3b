#include "cuda/operations.h"
#include "ops/batch_norm_formulas.h"

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

void CudaOperations::UpdateRunning(const BatchNormScalars& norm, const BatchNormBlobs& blobs, const float* mean,
                                   const float* variance) {
  ForEach(queue(), norm.channels, [=] __device__(int64_t c) {
    batch_norm::UpdateRunning(norm, blobs, c, mean[c], variance[c]);
    if (c == 0 && !norm.unit_weight) batch_norm::UpdateWeight(norm, blobs);
  });
  if (!norm.unit_weight) return;
  ForEach(queue(), 1, [=] __device__(int64_t) { batch_norm::UpdateWeight(norm, blobs); });
}

void CudaOperations::ForwardCoefficients(const BatchNormScalars& norm, const BatchNormForward& arrays) {
  // The struct lies in the memory of the host.
  const BatchNormBlobs running = arrays.running ? *arrays.running : BatchNormBlobs();
  ForEach(queue(), norm.channels, [=] __device__(int64_t c) {
    if (running.weight_sum) {
      const float factor = batch_norm::RunningFactor(running);
      arrays.mean[c] = running.mean_sum[c] * factor;
      arrays.inverse_deviation[c] = running.variance_sum[c] * factor;
    }
    batch_norm::ForwardCoefficients(norm, arrays, c);
  });
}

void CudaOperations::BackwardCoefficients(const BatchNormScalars& norm, const BatchNormBackward& arrays) {
  ForEach(queue(), norm.channels, [=] __device__(int64_t c) { batch_norm::BackwardCoefficients(norm, arrays, c); });
}

void CudaOperations::FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) {
  if (norm.channels == 0) return;
  const unsigned threads = arrays.width < 128 ? 32 * static_cast<unsigned>((arrays.width + 31) / 32) : 128;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(norm.channels, int64_t{queue().multiprocessors} * 16));
  Launch(queue(), blocks, std::max(threads, 32u), FoldKernel, norm, arrays);
}

}  // namespace crema::cuda
