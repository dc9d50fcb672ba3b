#include "leveldb/log_check.h"

#include <leveldb/dumpfile.h>
#include <leveldb/env.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace crema::level_db {

namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 32768, kHeader = 7;  // bytes

// Whether the records of a log, or of a MANIFEST, end where the file does. Checksums are left to LevelDB.
bool EndsWithARecord(const fs::path& path) {
  constexpr int kFirst = 2, kMiddle = 3;
  std::ifstream file(path, std::ios::binary);
  std::vector<unsigned char> block(kBlock);
  bool within = false, zeros = false;
  while (file) {
    file.read(reinterpret_cast<char*>(block.data()), kBlock);
    const auto bytes = static_cast<size_t>(file.gcount());
    size_t at = 0;
    while (at + kHeader <= bytes) {
      const size_t length = block[at + 4] | block[at + 5] << 8;
      const int kind = block[at + 6];
      if (kind == 0 && length == 0) {  // old versions made files longer in advance
        zeros = true;
        break;
      }
      if (zeros) return false;
      at += kHeader + length;
      within = kind == kFirst || kind == kMiddle;
    }
    // The last bytes of a block are left free where no header fits.
    if (!zeros && bytes < kBlock && at != bytes) return false;
  }
  return !within;
}

// Takes what LevelDB prints of a MANIFEST, one edit after the other.
class LastLogNumber : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& text) override {
    constexpr std::string_view kName = "\n  LogNumber: ";
    const std::string_view edit(text.data(), text.size());
    if (const size_t at = edit.find(kName); at != edit.npos) {
      std::from_chars(edit.data() + at + kName.size(), edit.data() + edit.size(), number_);
    }
    return {};
  }
  leveldb::Status Close() override { return {}; }
  leveldb::Status Flush() override { return {}; }
  leveldb::Status Sync() override { return {}; }

  uint64_t number() const { return number_; }

 private:
  uint64_t number_ = 0;
};

std::string EndsWithin(const std::string& name) {
  return "its " + name + " ends within a record: what was written behind that is lost";
}

}  // namespace

std::string ProblemOfLogs(const std::string& folder) {
  std::string manifest;
  std::ifstream current(fs::path(folder) / "CURRENT");
  if (!std::getline(current, manifest) || !manifest.starts_with("MANIFEST-")) return "";
  const fs::path path = fs::path(folder) / manifest;
  std::error_code error;
  if (!fs::exists(path, error)) return "its " + manifest + ", which CURRENT names, is missing";
  if (!EndsWithARecord(path)) return EndsWithin(manifest);
  LastLogNumber last;
  if (!leveldb::DumpFile(leveldb::Env::Default(), path, &last).ok()) return "";
  bool found = last.number() == 0;  // a database that was repaired has none
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    uint64_t number = 0;
    const auto [rest, status] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (status != std::errc() || std::string_view(rest) != ".log" || number < last.number()) continue;
    if (!EndsWithARecord(at->path())) return EndsWithin(name);
    found = found || number == last.number();
  }
  return error || found ? "" : "its log, number " + std::to_string(last.number()) + ", is missing";
}

}  // namespace crema::level_db
