#include "zoo/zoo.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/own_program.h"
#include "base/suggest.h"
#include "crema/error.h"
#include "schema/text_file.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "model_zoo";

// A folder that holds cards.
bool IsZoo(const fs::path& path) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory(error) && fs::exists(entry.path() / "README.md", error)) return true;
  }
  return false;
}

// model_zoo in the folder or one that holds it; empty where there is none.
std::string Above(fs::path folder) {
  while (true) {
    if (IsZoo(folder / kFolder)) return (folder / kFolder).string();
    if (!folder.has_parent_path() || folder == folder.parent_path()) return "";
    folder = folder.parent_path();
  }
}

ZooModel ReadModel(const fs::path& folder) {
  const std::string file = (folder / "README.md").string();
  ZooModel model;
  model.card = ParseCard(ReadTextFile(file, "card of a model"), file);
  model.folder = folder.string();
  if (model.card.name != folder.filename().string()) {
    throw UserError({file, 0, 0}, "name: is \"" + model.card.name + "\", but the folder's is \"" +
                                      folder.filename().string() + "\"; make them equal");
  }
  std::error_code error;
  model.has_weights = !model.card.weights.empty() && fs::is_regular_file(folder / model.card.weights, error);
  return model;
}

std::vector<std::string> ModelNames(const std::string& zoo) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(zoo, error)) {
    if (fs::exists(entry.path() / "README.md", error)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string FindZoo(const std::string& given) {
  if (!given.empty()) {
    if (IsZoo(given)) return given;
    throw UserError("--zoo=" + given + ": is no folder of models, each a folder with a README.md");
  }
  if (const char* variable = std::getenv("CREMA_ZOO"); variable && *variable) {
    if (IsZoo(variable)) return variable;
    throw UserError("the environment variable CREMA_ZOO is \"" + std::string(variable) +
                    "\", which is no folder of models, each a folder with a README.md");
  }
  std::error_code error;
  const fs::path program = OwnProgram().parent_path();
  const fs::path installed = (program / CREMA_INSTALLED_ZOO).lexically_normal();
  if (!program.empty()) {
    if (IsZoo(installed)) return installed.string();
    if (const std::string above = Above(program); !above.empty()) return above;
  }
  if (const std::string above = Above(fs::current_path(error)); !above.empty()) return above;
  if (IsZoo(CREMA_SOURCE_ZOO)) return CREMA_SOURCE_ZOO;
  throw UserError("the folder of models was not found: there is none at \"" + installed.string() +
                  "\", nor a model_zoo above the program or the working directory; give --zoo=DIR, or set CREMA_ZOO");
}

std::vector<ZooModel> ListZoo(const std::string& zoo) {
  std::vector<ZooModel> models;
  std::vector<Diagnostic> mistakes;
  for (const std::string& name : ModelNames(zoo)) {
    try {
      models.push_back(ReadModel(fs::path(zoo) / name));
    } catch (const UserError& error) {
      mistakes.insert(mistakes.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!mistakes.empty()) throw UserError(mistakes);
  return models;
}

ZooModel FindModel(const std::string& zoo, const std::string& name) {
  const std::vector<std::string> names = ModelNames(zoo);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string hint = DidYouMean(name, names);
    throw UserError("there is no model \"" + name + "\" in " + zoo +
                    (hint.empty() ? "; `crema zoo list` names those there are" : hint));
  }
  return ReadModel(fs::path(zoo) / name);
}

}  // namespace crema
