#include "base/hdf5.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/input_file.h"
#include "base/plugin.h"
#include "crema/error.h"

namespace crema {

namespace {

// `purpose` is "read x.h5".
const Hdf5Library& Library(const std::string& purpose) {
  // Tried again where it failed: this is only reached when something needs it. Never closed: HDF5 keeps what it opened
  // until the process ends.
  static const auto& library = *static_cast<const Hdf5Library*>(
      LoadTable({"CREMA_HDF5_LIBRARY", "libcrema_hdf5.so", "HDF5", "libhdf5-dev", "crema_hdf5_library", kHdf5Interface},
                purpose));
  return library;
}

}  // namespace

std::unique_ptr<Hdf5File> OpenHdf5(const std::string& path) {
  CheckRegularFile(path, ".h5");
  return Library("read " + path).open(path);
}

std::unique_ptr<Hdf5Writer> CreateHdf5(const std::string& path) { return Library("write " + path).create(path); }

bool BeginsAsHdf5(const std::string& path) {
  constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";
  constexpr size_t kBytes = sizeof(kSignature) - 1;
  char head[kBytes] = {};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // what is read of a pipe is gone
  std::ifstream file(path, std::ios::binary);
  return file.read(head, kBytes) && std::memcmp(head, kSignature, kBytes) == 0;
}

}  // namespace crema
