#include "cuda/normalization/channel_sums.h"
#include "cuda/normalization/channels.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

ChannelGrid GridOf(const BiasExtents& extents) {
  return {extents.outer, extents.values, extents.inner, Layout::kPlain, DType::kF32};
}

}  // namespace

void CudaOperations::AddBias(const BiasExtents& extents, const float* x, const float* bias, float* y) {
  MapChannels(queue(), GridOf(extents), {.x = x, .shift = bias, .y = y});
}

void CudaOperations::SumToBias(const BiasExtents& extents, const float* dy, float* gradient) {
  const ChannelGrid grid = GridOf(extents);
  const size_t bytes = static_cast<size_t>(PartFloats(queue(), grid, 1)) * sizeof(float);
  SumGradients(queue(), grid, {.dy = dy}, nullptr, nullptr, {.sum = gradient}, Scratch<float>(bytes));
}

}  // namespace crema::cuda
