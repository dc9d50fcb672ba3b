#include "base/check.h"
#include "cuda/operations.h"

namespace crema::cuda {

void CudaOperations::UpdateRunning(const BatchNormScalars& norm, const BatchNormBlobs& blobs, const float* mean, const float* variance) {
  CREMA_CHECK(false) << "UpdateRunning is not there yet";
}

void CudaOperations::ForwardCoefficients(const BatchNormScalars& norm, const BatchNormForward& arrays) {
  CREMA_CHECK(false) << "ForwardCoefficients is not there yet";
}

void CudaOperations::BackwardCoefficients(const BatchNormScalars& norm, const BatchNormBackward& arrays) {
  CREMA_CHECK(false) << "BackwardCoefficients is not there yet";
}

void CudaOperations::FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) {
  CREMA_CHECK(false) << "FoldNormalization is not there yet";
}

}  // namespace crema::cuda
