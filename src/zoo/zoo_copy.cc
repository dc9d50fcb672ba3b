#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/paths.h"
#include "crema/error.h"
#include "schema/text_file.h"
#include "zoo/zoo.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

bool IsPartOfModel(const fs::path& path, const Card& card) {
  const std::string name = path.filename().string(), extension = path.extension().string();
  return extension == ".prototxt" || extension == ".txt" || extension == ".binaryproto" || name == "README.md" ||
         name == card.weights;
}

// What a solver file names, as the copy is to have it. An empty snapshot_prefix is the solver file's own path: of
// several copies, wherever training is started, none writes over another's snapshots.
std::optional<std::string> Rewritten(const std::string& field, const std::string& value, const ZooModel& model) {
  if (field == "snapshot_prefix") return "";
  const std::string name = fs::path(value).filename().string();
  if (name.empty() || !fs::exists(fs::path(model.folder) / name)) return std::nullopt;
  return name;
}

struct Quoted {
  std::string value;
  size_t begin, end;  // with the marks
};

// What stands between quotation marks behind a colon at `at`.
std::optional<Quoted> QuotedBehind(const std::string& line, size_t at) {
  const auto next = [&](size_t from) { return std::min(line.find_first_not_of(" \t", from), line.size()); };
  at = next(at);
  if (at == line.size() || line[at] != ':') return std::nullopt;
  const size_t begin = next(at + 1);
  if (begin == line.size() || (line[begin] != '"' && line[begin] != '\'')) return std::nullopt;
  const size_t end = line.find_first_of("\"'", begin + 1);
  if (end == std::string::npos || line[end] != line[begin]) return std::nullopt;
  return Quoted{line.substr(begin + 1, end - begin - 1), begin, end + 1};
}

size_t EndOfWord(const std::string& line, size_t begin) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return static_cast<size_t>(std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(begin), line.end(), is_part) -
                             line.begin());
}

// Line by line, so that comments and layout stay. Comments are not touched: a field begins its line.
std::string RewriteSolver(const std::string& file, const std::string& text, const ZooModel& model, ModelCopy* copy) {
  static const std::set<std::string> fields = {"net", "train_net", "test_net", "snapshot_prefix"};
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = std::min(line.find_first_not_of(" \t"), line.size()), end = EndOfWord(line, begin);
    const std::string field = line.substr(begin, end - begin);
    const std::optional<Quoted> quoted = fields.count(field) > 0 ? QuotedBehind(line, end) : std::nullopt;
    if (const auto value = quoted ? Rewritten(field, quoted->value, model) : std::nullopt) {
      copy->rewritten.push_back(file + ": " + field + ": \"" + *value + "\"");
      line.replace(quoted->begin, quoted->end - quoted->begin, "\"" + *value + "\"");
      if (value->empty()) result += "# Snapshots lie beside this file and have its name.\n";
    }
    result += line + "\n";
  }
  return result;
}

// Paths that the data of a net has in them.
void FindPaths(const std::string& file, const std::string& text, ModelCopy* copy) {
  static const std::set<std::string> fields = {"source", "mean_file", "root_folder"};
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string code = line.substr(0, line.find('#'));
    for (size_t at = 0, end = 0; at < code.size(); at = std::max(end, at + 1)) {
      end = EndOfWord(code, at);
      const std::string field = code.substr(at, end - at);
      const std::optional<Quoted> path = fields.count(field) > 0 ? QuotedBehind(code, end) : std::nullopt;
      if (!path) continue;
      end = path->end;
      if (path->value.empty() || path->value[0] == '/') continue;
      copy->left.push_back(file + ":" + std::to_string(number) + ": " + field + ": \"" + path->value + "\"");
    }
  }
}

void CopyFile(const fs::path& from, const std::string& to) {
  AtomicFile file(to);
  VisitFile(from.string(), [&file](std::string_view part) {
    file.Write(part.data(), part.size());
    return true;
  });
  file.Commit();
}

}  // namespace

ModelCopy CopyModel(const ZooModel& model, const std::string& folder, bool force) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(model.folder)) {
    if (entry.is_regular_file() && IsPartOfModel(entry.path(), model.card)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Diagnostics problems;
  for (const fs::path& file : files) {
    const std::string target = (fs::path(folder) / file.filename()).string();
    std::error_code error;
    if (IsTaken(target) && (!force || fs::equivalent(file, target, error))) {
      problems.Error({target, 0, 0}, force ? "is the model's own file; give another folder"
                                           : "exists already; give another folder, or --force to replace it");
    }
  }
  problems.ThrowIfErrors();
  MakeFolder(folder);

  ModelCopy copy;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string(), target = (fs::path(folder) / name).string();
    copy.files.push_back(name);
    if (file.extension() != ".prototxt") {
      CopyFile(file, target);
      continue;
    }
    std::string text = ReadTextFile(file.string());
    if (name.find("solver") != std::string::npos) text = RewriteSolver(name, text, model, &copy);
    FindPaths(name, text, &copy);
    WriteWholeFile(target, text);
  }
  return copy;
}

}  // namespace crema
