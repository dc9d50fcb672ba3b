#include "base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "crema/error.h"

namespace crema {

namespace fs = std::filesystem;

std::string PluginPath(const char* variable, const char* file) {
  const char* given = std::getenv(variable);
  if (given && *given) return given;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&PluginPath), &info) == 0 || !info.dli_fname) return file;
  return (fs::path(info.dli_fname).parent_path() / file).string();
}

bool MayBeThere(const std::string& path) {
  std::error_code ignored;
  return path.find('/') == std::string::npos || fs::exists(path, ignored);
}

const void* LoadTable(const OptionalLibrary& library, const std::string& purpose) {
  const std::string path = PluginPath(library.variable, library.file), cannot = "cannot " + purpose + ": ",
                    name = library.name, package = library.package;
  if (!MayBeThere(path)) {
    throw EnvironmentError(cannot + "this crema was built without " + name + " (there is no " + path + "); install " +
                           name + " with its headers (Debian, Ubuntu: " + package +
                           "), then configure crema again with cmake and build it");
  }
  void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    throw EnvironmentError(cannot + "the " + name + " library of crema does not load: " + dlerror() + "; install the " +
                           name + " that it was built with (Debian, Ubuntu: " + package +
                           "), or say where it is with LD_LIBRARY_PATH");
  }
  const void* table = dlsym(loaded, library.table);
  if (!table || *static_cast<const int*>(table) != library.interface_version) {
    throw EnvironmentError(cannot + path + " is of another version of crema; install both from one build");
  }
  return table;
}

}  // namespace crema
