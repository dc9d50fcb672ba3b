#include "cuda/device/library_version.h"

namespace crema::cuda {

std::string LibraryVersion(const char*, const char*) { return "emulated"; }

}  // namespace crema::cuda
