#include "cuda/device/choice_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "crema/error.h"

namespace crema::cuda {

namespace {

// Of crema's files in the user's cache; empty where there is none.
std::filesystem::path CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::filesystem::path(cache) / "crema";
  const char* home = std::getenv("HOME");
  if (home && *home) return std::filesystem::path(home) / ".cache" / "crema";
  return {};
}

// Between reading and writing it nobody else writes; where a lock cannot be had, the later one wins.
class FileLock {
 public:
  explicit FileLock(const std::string& path) {
    if (path.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    file_ = open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace

ChoiceFile::ChoiceFile(const std::string& name) {
  const std::filesystem::path folder = CacheFolder();
  if (!folder.empty()) path_ = (folder / name).string();
  Read();
}

void ChoiceFile::Read() {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    char* end = nullptr;
    const long choice = std::strtol(line.c_str(), &end, 10);
    if (end == line.c_str() || *end != ' ' || choice < 0 || choice > 1000000) continue;
    choices_.try_emplace(end + 1, static_cast<int>(choice));
  }
}

std::optional<int> ChoiceFile::Find(const std::string& key) const {
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

int ChoiceFile::Remember(const std::string& key, int choice, std::optional<int> unusable) {
  const FileLock lock(path_);
  Read();
  const auto [at, is_new] = choices_.try_emplace(key, choice);
  const bool replaces = !is_new && at->second == unusable;
  if (replaces) at->second = choice;
  if (is_new || replaces) Write();
  return at->second;
}

void ChoiceFile::Write() const {
  if (path_.empty()) return;
  try {
    AtomicFile file(path_);
    for (const auto& [known, position] : choices_) file.Write(std::to_string(position) + " " + known + "\n");
    file.Commit();
  } catch (const EnvironmentError&) {
    // A full or read-only disk costs the next run some time, no more.
  }
}

}  // namespace crema::cuda
