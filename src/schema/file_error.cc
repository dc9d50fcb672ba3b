#include "schema/file_error.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "crema/error.h"

namespace crema {

void CheckReadableFile(const std::string& path, const std::string& kind) {
  if (path.empty()) throw UserError("the path of a " + kind + " file is empty");
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    if (error != ENOENT && error != ENOTDIR) {
      throw EnvironmentError(path + ": cannot be read: " + std::strerror(error));
    }
    std::string message = "there is no such file";
    std::error_code ignored;
    if (path[0] != '/') {
      message += "; relative paths start at the working directory " + std::filesystem::current_path(ignored).string();
    }
    throw UserError({path}, message);
  }
  if (S_ISDIR(status.st_mode)) throw UserError({path}, "is a directory; give a " + kind + " file");
  if (::access(path.c_str(), R_OK) != 0) {
    throw EnvironmentError(path + ": cannot be read: " + std::strerror(errno));
  }
}

void CheckRegularFile(const std::string& path, const std::string& kind) {
  CheckReadableFile(path, kind);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return;
  throw UserError({path}, "is no regular file but a pipe or device; give a " + kind + " file");
}

}  // namespace crema
