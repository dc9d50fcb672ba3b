#include "cuda/choice_file.h"

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
    choices_[end + 1] = static_cast<int>(choice);
  }
}

std::optional<int> ChoiceFile::Find(const std::string& key) const {
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

void ChoiceFile::Remember(const std::string& key, int choice) {
  Read();  // what other processes wrote meanwhile
  choices_[key] = choice;
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  try {
    AtomicFile file(path_);
    for (const auto& [known, position] : choices_) file.Write(std::to_string(position) + " " + known + "\n");
    file.Commit();
  } catch (const EnvironmentError&) {
    // A full or read-only disk costs the next run some time, no more.
  }
}

}  // namespace crema::cuda
