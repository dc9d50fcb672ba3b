#include "base/check.h"
#include "cuda/operations.h"

namespace crema::cuda {

void CudaOperations::ChainForward(const ElementwiseChain& chain, std::span<const RandomStream> streams, const Tensor& x, const Tensor& y, uint32_t* masks) {
  CREMA_CHECK(false) << "ChainForward is not there yet";
}

void CudaOperations::ChainForwardWithBias(const ElementwiseChain& chain, std::span<const RandomStream> streams, const float* bias, int64_t rows, int64_t columns, float* y, uint32_t* masks) {
  CREMA_CHECK(false) << "ChainForwardWithBias is not there yet";
}

void CudaOperations::ChainBackward(const ElementwiseChain& chain, const void* known, const uint32_t* masks, const Tensor& dy, const Tensor& dx) {
  CREMA_CHECK(false) << "ChainBackward is not there yet";
}

}  // namespace crema::cuda
