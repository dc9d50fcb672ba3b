#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "base/atomic_file.h"
#include "crema/error.h"
#include "zoo/zoo.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream && text.empty()) throw EnvironmentError("cannot read \"" + path.string() + "\"");
  return text;
}

bool IsPartOfModel(const fs::path& path, const Card& card) {
  const std::string name = path.filename().string(), extension = path.extension().string();
  return extension == ".prototxt" || extension == ".txt" || extension == ".binaryproto" || name == "README.md" ||
         name == card.weights;
}

// What a solver file names, as the copy is to have it; empty to leave it.
std::string Rewritten(const std::string& field, const std::string& value, const ZooModel& model) {
  const std::string name = fs::path(value).filename().string();
  if (field == "snapshot_prefix") return "snapshots/" + (name.empty() ? model.card.name : name);
  return !name.empty() && fs::exists(fs::path(model.folder) / name) ? name : "";
}

// Line by line, so that comments and layout stay. Comments are not touched: a field begins its line.
std::string RewriteSolver(const std::string& file, const std::string& text, const ZooModel& model, ModelCopy* copy) {
  static const std::regex path(R"(^(\s*(net|train_net|test_net|snapshot_prefix)\s*:\s*)(["'])([^"']*)\3(.*)$)");
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, path)) {
      const std::string value = Rewritten(match[2], match[4], model);
      if (!value.empty()) {
        copy->rewritten.push_back(file + ": " + match[2].str() + ": \"" + value + "\"");
        line = match[1].str() + "\"" + value + "\"" + match[5].str();
      }
    }
    result += line + "\n";
  }
  return result;
}

// Paths that the data of a net has in them.
void FindPaths(const std::string& file, const std::string& text, ModelCopy* copy) {
  static const std::regex path(R"re(\b(source|mean_file|root_folder)\s*:\s*["']([^"']*)["'])re");
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string code = line.substr(0, line.find('#'));
    for (std::sregex_iterator at(code.begin(), code.end(), path), end; at != end; ++at) {
      const std::string value = (*at)[2];
      if (value.empty() || value[0] == '/') continue;
      copy->left.push_back(file + ":" + std::to_string(number) + ": " + (*at)[1].str() + ": \"" + value + "\"");
    }
  }
}

void CopyFile(const fs::path& from, const std::string& to) {
  std::ifstream stream(from, std::ios::binary);
  if (!stream) throw EnvironmentError("cannot read \"" + from.string() + "\"");
  AtomicFile file(to);
  std::vector<char> block(1 << 20);
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    file.Write(block.data(), static_cast<size_t>(stream.gcount()));
  }
  if (stream.bad()) throw EnvironmentError("cannot read \"" + from.string() + "\"");
  file.Commit();
}

void MakeFolders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw EnvironmentError("cannot make the folder \"" + path.string() + "\": " + error.message());
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
    if (fs::exists(target, error) && (!force || fs::equivalent(file, target, error))) {
      problems.Error({target, 0, 0}, force ? "is the model's own file; give another folder"
                                           : "exists already; give another folder, or --force to replace it");
    }
  }
  problems.ThrowIfErrors();
  MakeFolders(folder);

  ModelCopy copy;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string(), target = (fs::path(folder) / name).string();
    copy.files.push_back(name);
    if (file.extension() != ".prototxt") {
      CopyFile(file, target);
      continue;
    }
    std::string text = ReadFile(file);
    const size_t rewritten = copy.rewritten.size();
    if (name.find("solver") != std::string::npos) text = RewriteSolver(name, text, model, &copy);
    if (copy.rewritten.size() > rewritten) MakeFolders(fs::path(folder) / "snapshots");
    FindPaths(name, text, &copy);
    AtomicFile out(target);
    out.Write(text);
    out.Commit();
  }
  return copy;
}

}  // namespace crema
