// Compiled in place of cudnn_version.cc where cuDNN was not found.
#include "device/cuda/library_versions.h"

namespace crema::cuda {

std::string CudnnVersion() { return "not in this build"; }

}  // namespace crema::cuda
