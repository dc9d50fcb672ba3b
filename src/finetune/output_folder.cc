#include "finetune/output_folder.h"

#include <filesystem>
#include <iterator>
#include <optional>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/listed.h"
#include "base/paths.h"
#include "base/printable.h"
#include "crema/error.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

std::optional<std::string> Contents(const std::string& path) {
  return Exists(path) ? std::optional(ReadFileText(path)) : std::nullopt;
}

// Those of the prefix; others may have theirs there, too.
void RemoveSnapshots(const fs::path& prefix) {
  for (const fs::directory_entry& entry : fs::directory_iterator(prefix.parent_path())) {
    fs::path name = entry.path().filename();
    if (!name.string().starts_with(prefix.filename().string() + "_")) continue;
    if (name.extension() == ".h5") name.replace_extension();
    const std::string extension = name.extension().string();
    if (extension == ".caffemodel" || extension == ".solverstate") fs::remove(entry.path());
  }
}

}  // namespace

std::string SnapshotPrefixIn(const std::string& folder) { return folder + "/snapshots/model"; }

void MakeOutputFolder(const std::string& folder) { MakeFolder(DirectoryOf(SnapshotPrefixIn(folder))); }

bool WriteOutputFolder(const std::string& folder, const std::map<std::string, std::string>& files, bool force) {
  try {
    bool all_there = true;
    std::vector<std::string> other;
    for (const auto& [name, text] : files) {
      const std::optional<std::string> present = Contents((fs::path(folder) / name).string());
      all_there &= present == text;
      if (present && *present != text) other.push_back(name);
    }
    if (all_there && !force) return true;
    if (!other.empty() && !force) {
      throw UserError("\"" + folder + "\" holds files of another request or of other images, or edited ones (" +
                      Listed(other) +
                      "). To go on with them: crema train --solver=" + ShellWord(folder + "/solver.prototxt") +
                      " --snapshot=auto. To start anew: --force, or another --output");
    }
    if (force) RemoveSnapshots(SnapshotPrefixIn(folder));
    for (const auto& [name, text] : files) {
      WriteWholeFile((fs::path(folder) / name).string(), text);
    }
    return false;
  } catch (const fs::filesystem_error& error) {
    throw EnvironmentError("cannot write \"" + error.path1().string() + "\": " + error.code().message());
  }
}

}  // namespace crema
