#include "base/working_directory.h"

#include <filesystem>
#include <system_error>

namespace crema {

std::string WorkingDirectory() {
  std::error_code gone;
  const std::filesystem::path folder = std::filesystem::current_path(gone);
  return gone ? std::string() : folder.string();
}

void ReturnToFolder(const std::string& folder) {
  if (folder.empty() || !WorkingDirectory().empty()) return;
  std::error_code none;
  std::filesystem::current_path(folder, none);
}

}  // namespace crema
