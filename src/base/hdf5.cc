#include "base/hdf5.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/plugin.h"
#include "crema/error.h"

namespace crema {

namespace {

// `purpose` is "read x.h5".
const Hdf5Library& Load(const std::string& purpose) {
  const std::string path = PluginPath("CREMA_HDF5_LIBRARY", "libcrema_hdf5.so"), cannot = "cannot " + purpose + ": ";
  if (!MayBeThere(path)) {
    throw EnvironmentError(cannot + "this crema was built without HDF5 (there is no " + path +
                           "); install HDF5 with its headers (Debian, Ubuntu: libhdf5-dev) and build crema again");
  }
  // Never closed: HDF5 keeps what it opened until the process ends.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    throw EnvironmentError(cannot + "the HDF5 library of crema does not load: " + dlerror() +
                           "; install the HDF5 that it was built with (Debian, Ubuntu: libhdf5-dev), or say where it "
                           "is with LD_LIBRARY_PATH");
  }
  const auto* found = static_cast<const Hdf5Library*>(dlsym(library, "crema_hdf5_library"));
  if (!found || found->interface_version != kHdf5Interface) {
    throw EnvironmentError(cannot + path + " is of another version of crema; install both from one build");
  }
  return *found;
}

const Hdf5Library& Library(const std::string& purpose) {
  // Tried again where it failed: this is only reached when something needs it.
  static const Hdf5Library& library = Load(purpose);
  return library;
}

}  // namespace

std::unique_ptr<Hdf5File> OpenHdf5(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw UserError({path}, "is a folder, expected an HDF5 file");
  errno = 0;
  if (!std::ifstream(path, std::ios::binary)) {
    if (errno == ENOENT || errno == ENOTDIR) throw UserError({path}, "does not exist; correct the path");
    throw EnvironmentError("cannot read " + path + ": " + std::strerror(errno));
  }
  return Library("read " + path).open(path);
}

std::unique_ptr<Hdf5Writer> CreateHdf5(const std::string& path) { return Library("write " + path).create(path); }

bool BeginsAsHdf5(const std::string& path) {
  constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";
  constexpr size_t kBytes = sizeof(kSignature) - 1;
  char head[kBytes] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(head, kBytes) && std::memcmp(head, kSignature, kBytes) == 0;
}

}  // namespace crema
