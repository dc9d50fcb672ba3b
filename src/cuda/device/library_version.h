// Versions of the GPU libraries a machine has.
#ifndef CREMA_CUDA_DEVICE_LIBRARY_VERSION_H_
#define CREMA_CUDA_DEVICE_LIBRARY_VERSION_H_

#include <string>

namespace crema::cuda {

// "13.1.0", as the library says when asked through `get_property` ("cublasGetProperty"), or "not found". `file` is its
// soname. Loaded here and now: linked, it would cost every run on the CPU its start-up time and 150 MB.
std::string LibraryVersion(const char* file, const char* get_property);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_LIBRARY_VERSION_H_
