#include "base/check.h"
#include "cuda/operations.h"

namespace crema::cuda {

void CudaOperations::MaximumOfTwo(const Tensor& a, const Tensor& b, const Tensor& y, uint8_t* from) {
  CREMA_CHECK(false) << "MaximumOfTwo is not there yet";
}

void CudaOperations::MaximumWith(const Tensor& x, uint8_t index, const Tensor& y, uint8_t* from) {
  CREMA_CHECK(false) << "MaximumWith is not there yet";
}

void CudaOperations::MaximumBackward(const Tensor& dy, const uint8_t* from, uint8_t index, const Tensor& dx) {
  CREMA_CHECK(false) << "MaximumBackward is not there yet";
}

}  // namespace crema::cuda
