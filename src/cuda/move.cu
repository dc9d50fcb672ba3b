#include "base/check.h"
#include "cuda/operations.h"

namespace crema::cuda {

void CudaOperations::Copy(const void* from, void* to, size_t bytes) {
  CREMA_CHECK(false) << "Copy is not there yet";
}

void CudaOperations::CopyRows(int64_t rows, int64_t width, ByteRows from, MutableByteRows to) {
  CREMA_CHECK(false) << "CopyRows is not there yet";
}

void CudaOperations::CopyRectified(DType dtype, int64_t rows, int64_t width, ByteRows from, MutableByteRows to) {
  CREMA_CHECK(false) << "CopyRectified is not there yet";
}

void CudaOperations::CopyRectifiedGradient(DType dtype, int64_t rows, int64_t width, ByteRows gradient, ByteRows rectified, MutableByteRows to) {
  CREMA_CHECK(false) << "CopyRectifiedGradient is not there yet";
}

void CudaOperations::CopyOut(const Box& box, const float* whole, float* part) {
  CREMA_CHECK(false) << "CopyOut is not there yet";
}

void CudaOperations::CopyIn(const Box& box, const float* part, float* whole) {
  CREMA_CHECK(false) << "CopyIn is not there yet";
}

}  // namespace crema::cuda
