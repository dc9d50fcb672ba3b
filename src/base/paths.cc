#include "base/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "crema/error.h"

namespace crema {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string AsRoot(const std::string& folder) {
  return folder.empty() || folder.ends_with('/') ? folder : folder + "/";
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool IsTaken(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

void MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw EnvironmentError("cannot make the folder \"" + path + "\": " + error.message());
}

std::string FindFile(const std::string& path, const std::vector<std::string>& folders) {
  if (path.empty() || path[0] == '/' || Exists(path)) return path;
  for (const std::string& folder : folders) {
    std::string candidate = folder + "/" + path;
    if (Exists(candidate)) return candidate;
  }
  return path;
}

}  // namespace crema
