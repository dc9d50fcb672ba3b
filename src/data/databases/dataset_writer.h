// Writing a data set: one database, or one for each part of a split, and the names of the classes.
#ifndef CREMA_DATA_DATABASES_DATASET_WRITER_H_
#define CREMA_DATA_DATABASES_DATASET_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/databases/dataset_split.h"
#include "data/databases/lmdb_writer.h"

namespace crema {

// What a program is told to write.
struct DatasetTarget {
  std::string database;                              // "pets" or "pets_lmdb"
  std::vector<DatasetPart> parts = {DatasetPart()};  // see ParseSplit
  bool replace = false;
  uint64_t seed = 1;                     // which records go to which part, and their order
  std::vector<std::string> inputs = {};  // files and folders that are read, and that nothing is written to

  bool split() const { return parts.size() > 1 || !parts[0].name.empty(); }
  // `database` where it is not split, else "pets_train_lmdb".
  std::string DatabaseOf(size_t part) const;
  // "pets_labels.txt".
  std::string LabelsFile() const;
};

// The labels file that is there for a database, whether it is whole or a part of a split: "pets_labels.txt" for
// "pets_lmdb" and "pets_train_lmdb"; empty where there is none, and where that file is a list of images.
std::string LabelsBeside(const std::string& database);

// Nothing appears under the final names before Commit; each name then appears whole. Used by one thread.
class DatasetWriter {
 public:
  // `labels`: names of the classes for the labels file; empty for none. Throws UserError where something would be
  // written to what is read, or exists and is not to be replaced: it says which of the names do, as a killed conversion
  // may leave some of them.
  DatasetWriter(DatasetTarget target, std::vector<std::string> labels);

  void Put(size_t part, std::string_view key, std::string_view value);
  // Throws UserError where a part has no records. `name_others` gives files that belong to the databases their names:
  // it is called when all of these are on the disk, those that they replace are gone, and none has its name.
  void Commit(const std::function<void()>& name_others = {});
  // One line for each name: "pets_train_lmdb: 1259 records".
  std::string Summary() const;

 private:
  void CheckExisting() const;

  DatasetTarget target_;
  std::vector<std::string> labels_;
  std::vector<std::unique_ptr<LmdbWriter>> writers_;
};

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_DATASET_WRITER_H_
