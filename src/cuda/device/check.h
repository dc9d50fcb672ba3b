// Errors of CUDA calls as exceptions.
#ifndef CREMA_CUDA_DEVICE_CHECK_H_
#define CREMA_CUDA_DEVICE_CHECK_H_

#include <cuda_runtime.h>

#include <string>

namespace crema::cuda {

// Throws EnvironmentError: "`what` failed: <CUDA's words>".
[[noreturn]] void Throw(cudaError_t error, const std::string& what);

// `what` names what was tried, as in "copy to the GPU".
inline void Check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) Throw(error, what);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_CHECK_H_
