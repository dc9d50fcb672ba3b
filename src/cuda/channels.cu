#include "base/check.h"
#include "cuda/operations.h"

namespace crema::cuda {

size_t CudaOperations::ChannelWorkspace(const ChannelGrid& grid) {
  CREMA_CHECK(false) << "ChannelWorkspace is not there yet";
  return {};
}

void CudaOperations::ChannelMoments(const ChannelGrid& grid, const void* x, float* mean, float* variance, std::byte* workspace) {
  CREMA_CHECK(false) << "ChannelMoments is not there yet";
}

void CudaOperations::ChannelAffine(const ChannelGrid& grid, const crema::ChannelAffine& map, std::byte* workspace) {
  CREMA_CHECK(false) << "ChannelAffine is not there yet";
}

void CudaOperations::ChannelGradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const float* mean, float* sum, float* product, std::byte* workspace) {
  CREMA_CHECK(false) << "ChannelGradientSums is not there yet";
}

void CudaOperations::ChannelGradientMap(const ChannelGrid& grid, const crema::ChannelGradientMap& map, std::byte* workspace) {
  CREMA_CHECK(false) << "ChannelGradientMap is not there yet";
}

}  // namespace crema::cuda
