#include "data/databases/dataset_writer.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/output_path.h"
#include "base/paths.h"
#include "crema/error.h"
#include "data/files/image_list.h"
#include "image/codec.h"

namespace crema {

namespace {

// "dir/pets" of "dir/pets_lmdb/".
std::string StemOf(const std::string& path) {
  const std::string database = WithoutTrailingSlashes(path);
  for (const std::string ending : {"_lmdb", ".lmdb"}) {
    if (database.size() > ending.size() && database.ends_with(ending) && database[database.size() - 6] != '/') {
      return database.substr(0, database.size() - ending.size());
    }
  }
  return database;
}

// Of a file that may not be there, or hold anything.
bool HasLabels(const std::string& file, const std::vector<std::string>& labels) {
  try {
    return IsTaken(file) && ReadLabels(file) == labels;
  } catch (const UserError&) {
    return false;
  }
}

// Lists of images, too, are called train_labels.txt.
bool IsLabelsFile(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line) && line.find_first_not_of(" \t\r") == std::string::npos) {
  }
  for (size_t blank = 0; blank != std::string::npos;) {  // paths may have blanks, and several labels stand behind them
    blank = line.find_first_of(" \t\r", blank + 1);
    if (HasImageName(line.substr(0, blank))) return false;
  }
  return true;
}

}  // namespace

std::string DatasetTarget::DatabaseOf(size_t part) const {
  return split() ? StemOf(database) + "_" + parts[part].name + "_lmdb" : database;
}

std::string DatasetTarget::LabelsFile() const { return StemOf(database) + "_labels.txt"; }

std::string LabelsBeside(const std::string& database) {
  const std::string stem = StemOf(database);
  const size_t name = stem.rfind('/') + 1, part = stem.rfind('_');
  std::string file = stem + "_labels.txt";
  if (IsLabelsFile(file)) return file;
  if (part == std::string::npos || part <= name) return "";
  file = stem.substr(0, part) + "_labels.txt";
  return IsLabelsFile(file) ? file : "";
}

DatasetWriter::DatasetWriter(DatasetTarget target, std::vector<std::string> labels)
    : target_(std::move(target)), labels_(std::move(labels)) {
  for (size_t part = 0; part < target_.parts.size(); ++part) {
    RefuseOutputInInputs(target_.DatabaseOf(part), target_.inputs);
  }
  CheckExisting();
  if (!labels_.empty()) CheckOutputFile(target_.LabelsFile(), true, target_.inputs);
  if (!labels_.empty()) MentionLeftovers(target_.LabelsFile());
  for (size_t part = 0; part < target_.parts.size(); ++part) {
    writers_.push_back(std::make_unique<LmdbWriter>(
        target_.DatabaseOf(part), target_.replace ? LmdbWriter::Existing::kReplace : LmdbWriter::Existing::kRefuse));
  }
}

void DatasetWriter::CheckExisting() const {
  if (target_.replace) return;
  std::string found, missing;
  for (size_t part = 0; part < target_.parts.size(); ++part) {
    const std::string name = target_.DatabaseOf(part);
    std::string& list = IsTaken(name) ? found : missing;
    list += (list.empty() ? "\"" : ", \"") + name + "\"";
  }
  if (!found.empty() && !missing.empty()) {
    throw UserError("of the databases to write, " + found + " exists already, but " + missing +
                    " does not (was a conversion killed?); pass --force to make all of them anew");
  }
  const std::string file = target_.LabelsFile();
  if (found.empty() && !labels_.empty() && IsTaken(file) && !HasLabels(file, labels_)) {
    throw UserError("\"" + file + "\" exists already with other classes; remove it, choose another name for the " +
                    "database, or pass --force to replace it");
  }
}

void DatasetWriter::Put(size_t part, std::string_view key, std::string_view value) { writers_[part]->Put(key, value); }

void DatasetWriter::Commit(const std::function<void()>& name_others) {
  for (size_t part = 0; part < writers_.size(); ++part) {
    if (writers_[part]->records() > 0) continue;
    throw UserError(target_.split() ? "there are too few records: none is left for \"" + target_.parts[part].name +
                                          "\"; leave out --split, or give it a larger share"
                                    : "there is no record to write to \"" + target_.database + "\"");
  }
  // All that takes time, or may find the disk full, comes before the first name appears.
  for (const auto& writer : writers_) writer->Flush();
  std::optional<AtomicFile> labels;
  if (!labels_.empty()) {
    labels.emplace(target_.LabelsFile());
    for (const std::string& label : labels_) labels->Write(label + "\n");
  }
  // A kill from here on leaves a part missing, never parts of two conversions side by side, or one with the names of
  // another's classes.
  const bool all_go = name_others || (labels && !HasLabels(target_.LabelsFile(), labels_));
  for (size_t part = all_go ? 0 : 1; part < writers_.size(); ++part) writers_[part]->RemoveReplaced();
  // Early, so that databases never lack their labels.
  if (labels) labels->Commit();
  if (name_others) name_others();
  for (const auto& writer : writers_) writer->Commit();
}

std::string DatasetWriter::Summary() const {
  std::string text;
  for (size_t part = 0; part < writers_.size(); ++part) {
    text += target_.DatabaseOf(part) + ": " + std::to_string(writers_[part]->records()) + " records\n";
  }
  if (!labels_.empty()) {
    text += target_.LabelsFile() + ": " + std::to_string(labels_.size()) + " classes\n";
  } else if (IsLabelsFile(target_.LabelsFile())) {
    text += target_.LabelsFile() +
            ": warning: stays from before, and others take the names of the classes from it; "
            "remove it where it names other classes\n";
  }
  return text;
}

}  // namespace crema
