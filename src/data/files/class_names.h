// Names of classes, and how many records each has.
#ifndef CREMA_DATA_FILES_CLASS_NAMES_H_
#define CREMA_DATA_FILES_CLASS_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/error.h"
#include "data/files/image_list.h"

namespace crema {

// Names in the order of the labels, and the file that has them.
struct ClassList {
  std::string file;
  std::vector<std::string> names;
};

// As ReadLabels. Throws UserError where a name stands twice, too.
ClassList ReadClassList(const std::string& file);

// Numbers the classes of a folder's list as `classes` does, whose names it gets. Throws UserError with the folders that
// are none of them.
void NumberClassesAs(const ClassList& classes, ImageList* list);

// Compares what a database's own file of labels says, "pets_labels.txt" of "pets_train_lmdb", with the names that are
// given for it. Throws UserError where both have a name, but for another class; warns where they have other names for a
// class, which may be a translation, or where that file cannot be read. Nothing where the database has no such file, or
// the names come from it.
void CheckClassesOf(const std::string& database, const ClassList& classes, Diagnostics* warnings);

// How many records of each class a data set has.
struct ClassCounts {
  std::vector<std::string> names;
  std::vector<std::string> parts;            // headings: "train", "val"
  std::vector<std::vector<int64_t>> counts;  // of each class, in each part

  ClassCounts() = default;
  ClassCounts(std::vector<std::string> classes, std::vector<std::string> headings);
};

// A line for each class, under one with the headings; of more than 20 classes those with the fewest records.
std::string CountsTable(const ClassCounts& counts);
// Names that only case and blanks tell apart, as by mistake, each with those before it: a sentence for each, at
// most 20.
std::vector<std::string> LookAlikes(const std::vector<std::string>& names);
// The classes that parts have no record of: a sentence for each part.
std::vector<std::string> MissingClasses(const ClassCounts& counts);
// Whether there are several classes, and all records of one lie behind all of another: nets learn nothing from them in
// that order.
bool LieInOrder(const std::vector<int>& classes);

}  // namespace crema

#endif  // CREMA_DATA_FILES_CLASS_NAMES_H_
