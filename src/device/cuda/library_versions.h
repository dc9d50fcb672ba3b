// Versions of the GPU libraries that this build uses.
#ifndef CREMA_DEVICE_CUDA_LIBRARY_VERSIONS_H_
#define CREMA_DEVICE_CUDA_LIBRARY_VERSIONS_H_

#include <string>

namespace crema::cuda {

// "13.1.0", as the library loaded at run time says; needs no GPU.
std::string CublasVersion();
// As above, or "not in this build".
std::string CudnnVersion();

}  // namespace crema::cuda

#endif  // CREMA_DEVICE_CUDA_LIBRARY_VERSIONS_H_
