#include <cudnn.h>

#include "device/cuda/library_versions.h"

namespace crema::cuda {

std::string CudnnVersion() {
  std::string version;
  for (libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    if (cudnnGetProperty(part, &value) != CUDNN_STATUS_SUCCESS) return "unknown";
    version += (version.empty() ? "" : ".") + std::to_string(value);
  }
  return version;
}

}  // namespace crema::cuda
