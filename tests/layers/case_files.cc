#include "layers/case_files.h"

#include <google/protobuf/text_format.h>

#include <filesystem>
#include <set>

#include "schema/text_file.h"
#include "source_folder.h"

namespace crema::testing {

namespace {

const std::string kFolder = SourceFolder() + "/tests/layers";

CaseFile ReadCaseFile(const std::string& path) {
  CaseFile file{path, std::filesystem::path(path).stem().string(), {}, {}};
  LayerCases cases;
  // Not as nets are read, which refuses values such as nan. What is wrong goes to stderr.
  if (!::google::protobuf::TextFormat::ParseFromString(ReadTextFile(path), &cases)) {
    file.problem = path + ": is no text of LayerCases\n";
  }
  std::set<std::string> names;
  for (LayerCase& test : *cases.mutable_case_()) {
    if (test.layer().type().empty()) test.mutable_layer()->set_type(file.type);
    if (test.layer().type() != file.type) file.problem += path + ": case " + test.name() + " is of another type\n";
    if (test.name().empty() || !names.insert(test.name()).second) {
      file.problem += path + ": case without a name of its own\n";
    }
    file.cases.push_back(std::move(test));
  }
  if (file.cases.empty() && file.problem.empty()) file.problem = path + ": holds no case";
  return file;
}

}  // namespace

std::vector<CaseFile> ReadCaseFiles() {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".prototxt") paths.insert(entry.path().string());
  }
  std::vector<CaseFile> files;
  for (const std::string& path : paths) files.push_back(ReadCaseFile(path));
  return files;
}

std::string CaseFilePath(const std::string& type) { return kFolder + "/" + type + ".prototxt"; }

}  // namespace crema::testing
