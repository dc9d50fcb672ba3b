#include "cuda/device/library_version.h"

#include <dlfcn.h>
#include <library_types.h>

namespace crema::cuda {

std::string LibraryVersion(const char* file, const char* get_property) {
  void* library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (!library) return "not found";
  // All of NVIDIA's libraries answer this way: a status, 0 for success, and one part of the version.
  const auto get = reinterpret_cast<int (*)(libraryPropertyType, int*)>(dlsym(library, get_property));
  std::string version;
  for (libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    if (!get || get(part, &value) != 0) {
      version = "unknown";
      break;
    }
    version += (version.empty() ? "" : ".") + std::to_string(value);
  }
  dlclose(library);
  return version;
}

}  // namespace crema::cuda
