#include "base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

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

}  // namespace crema
