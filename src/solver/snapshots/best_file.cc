#include "solver/snapshots/best_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "solver/snapshots/prefix_files.h"

namespace crema {

BestFile::BestFile(std::string prefix, SnapshotFormat format)
    : prefix_(std::move(prefix)), format_(format), path_(BestModelPath(prefix_, format)) {}

std::string BestFile::MakeOwn() {
  if (own_) return "";
  earlier_ = SetBestAside(prefix_, format_);
  own_ = true;
  return earlier_;
}

bool BestFile::GiveBack(bool written) {
  if (!std::exchange(own_, false)) return false;
  const std::string earlier = std::exchange(earlier_, "");
  std::error_code error;
  if (written) std::filesystem::remove(path_, error);
  if (earlier.empty()) return false;
  std::filesystem::rename(earlier, path_, error);
  return !error;
}

}  // namespace crema
