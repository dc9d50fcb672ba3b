#include "finetune/output_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/listed.h"
#include "base/paths.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/trimmed.h"
#include "crema/error.h"
#include "solver/snapshots/prefix_files.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr char kSolver[] = "solver.prototxt";

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

// Copies have the times at which they were made, in any order, and which snapshot is the last is told by these, too.
void MakeLastNewest(const std::string& prefix) {
  const std::vector<StateFile> states = FindStates(prefix, SolverParameter::BINARYPROTO);
  if (!states.empty()) fs::last_write_time(states[0].path, fs::file_time_type::clock::now());
}

using Lines = std::vector<std::string>;

Lines LinesOf(const std::string& text) {
  Lines lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

std::string Joined(const Lines& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" : "") + lines[i];
  return text;
}

bool IsComment(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t\r");
  return first == std::string::npos || line[first] == '#';
}

// What stands between the two in the first line of which all is that; without one nothing.
std::optional<std::string> Between(const Lines& lines, std::string_view before, std::string_view after) {
  for (const std::string& line : lines) {
    if (line.size() < before.size() + after.size() || !line.starts_with(before) || !line.ends_with(after)) continue;
    return line.substr(before.size(), line.size() - before.size() - after.size());
  }
  return std::nullopt;
}

// The folder that the files of a solver name, as it stands there in quotes.
std::optional<std::string> FolderIn(const Lines& solver) { return Between(solver, "net: \"", "/train_val.prototxt\""); }

std::optional<std::string> WeightsIn(const std::string& line) { return Between({line}, "weights: \"", "\""); }

// Throws EnvironmentError where one of two that may be the same cannot be read.
bool SameBytes(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  if (fs::file_size(a, ignored) != fs::file_size(b, ignored)) return false;
  const std::string sum = Sha256OfFile(a);
  return Sha256OfFile(b) == sum;
}

// Whether the files that a run began with may be those of the request in another place. What is gone is known by its
// name: a run that goes on does not read it.
bool SameWeights(const std::string& present, const std::string& wanted) {
  const std::vector<std::string> then = CommaParts(present), now = CommaParts(wanted);
  const auto same = [](const std::string& a, const std::string& b) {
    return FileName(a) == FileName(b) && (!Exists(a) || SameBytes(a, b));
  };
  return std::equal(then.begin(), then.end(), now.begin(), now.end(), same);
}

struct Difference {
  std::string file;
  int line = 0;  // from 1
  std::string present, wanted;
};

std::string Said(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos ? "nothing" : "`" + OneLine(line.substr(first)) + "`";
}

// The files of a folder beside those of a request.
class Comparison {
 public:
  Comparison(const std::string& folder, const std::map<std::string, std::string>& files)
      : folder_(folder), files_(files) {
    for (const auto& [name, text] : files) {
      if (const auto present = Contents(Path(name))) present_[name] = LinesOf(*present);
    }
    if (present_.contains(kSolver)) {
      const auto then = FolderIn(present_[kSolver]), now = FolderIn(LinesOf(files_.at(kSolver)));
      if (then && now && *then != *now) moved_ = {*then, *now};
    }
    for (auto& [name, lines] : present_) Compare(name, &lines);
  }

  void ThrowIfOther() const {
    if (differences_.empty()) return;
    std::vector<std::string> names;
    for (const Difference& difference : differences_) names.push_back(difference.file);
    const Difference& first = differences_[0];
    throw UserError(Location{Path(first.file), first.line, 0},
                    "says " + Said(first.present) + ", and this request " + Said(first.wanted) + ": \"" + folder_ +
                        "\" holds files of another request or of other images, or edited ones (" + Listed(names) +
                        "). " + HowToGoOn() + "To start anew: --force, or another --output");
  }

  // The text of a file that is to be written; nothing where it is there.
  std::optional<std::string> ToWrite(const std::string& name) const {
    if (!present_.contains(name)) return files_.at(name);
    std::string text = Joined(present_.at(name));
    return Contents(Path(name)) == text ? std::nullopt : std::optional(std::move(text));
  }

  FoundFolder found() const { return {present_.contains(kSolver), moved_ ? moved_->then : ""}; }

 private:
  struct Moved {
    std::string then, now;
  };

  std::string Path(const std::string& name) const { return (fs::path(folder_) / name).string(); }

  bool Same(std::string line, const std::string& wanted) const {
    if (line == wanted) return true;
    if (const auto then = WeightsIn(line), now = WeightsIn(wanted); then && now) return SameWeights(*then, *now);
    if (!moved_) return false;
    const std::string then = "\"" + moved_->then + "/";
    const size_t at = line.find(then);
    return at != std::string::npos && line.replace(at, then.size(), "\"" + moved_->now + "/") == wanted;
  }

  // Puts the request's lines in the place of those that say the same.
  void Compare(const std::string& name, Lines* lines) {
    const bool net = name.ends_with(".prototxt");
    Lines wanted = LinesOf(files_.at(name));
    if (net) std::erase_if(wanted, IsComment);
    size_t next = 0;
    int number = 0;
    for (std::string& line : *lines) {
      ++number;
      if (net && IsComment(line)) continue;
      const std::string expected = next < wanted.size() ? wanted[next] : "";
      if (next++ >= wanted.size() || !Same(line, expected)) {
        differences_.push_back({name, number, line, expected});
        return;
      }
      line = expected;
    }
    if (next < wanted.size()) differences_.push_back({name, number, "", wanted[next]});
  }

  // With files that were edited: where they train in this folder.
  std::string HowToGoOn() const {
    if (!present_.contains(kSolver)) return "";
    for (const std::string& line : present_.at(kSolver)) {
      if (!line.starts_with("snapshot_prefix")) continue;
      if (line.find("\"" + folder_ + "/") == std::string::npos) {
        return "Its solver.prototxt trains elsewhere (" + OneLine(line) + "). ";
      }
      return "To go on with them: crema train --solver=" + ShellWord(Path(kSolver)) + " --snapshot=auto. ";
    }
    return "";
  }

  const std::string& folder_;
  const std::map<std::string, std::string>& files_;
  std::map<std::string, Lines> present_;
  std::optional<Moved> moved_;
  std::vector<Difference> differences_;
};

}  // namespace

std::string SnapshotPrefixIn(const std::string& folder) { return folder + "/snapshots/model"; }

void MakeOutputFolder(const std::string& folder) { MakeFolder(DirectoryOf(SnapshotPrefixIn(folder))); }

FoundFolder WriteOutputFolder(const std::string& folder, const std::map<std::string, std::string>& files, bool force) {
  try {
    if (force) {
      RemoveSnapshots(SnapshotPrefixIn(folder));
      for (const auto& [name, text] : files) WriteWholeFile((fs::path(folder) / name).string(), text);
      return {};
    }
    const Comparison comparison(folder, files);
    comparison.ThrowIfOther();
    const auto write = [&](const std::string& name) {
      if (const auto text = comparison.ToWrite(name)) WriteWholeFile((fs::path(folder) / name).string(), *text);
    };
    for (const auto& [name, ignored] : files) {
      if (name != kSolver) write(name);
    }
    const FoundFolder found = comparison.found();
    if (!found.moved_from.empty()) MakeLastNewest(SnapshotPrefixIn(folder));
    write(kSolver);  // last, as it tells where the folder was
    return found;
  } catch (const fs::filesystem_error& error) {
    throw EnvironmentError("cannot write \"" + error.path1().string() + "\": " + error.code().message());
  }
}

}  // namespace crema
