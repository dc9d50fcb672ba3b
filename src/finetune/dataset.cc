#include "finetune/dataset.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/input_file.h"
#include "base/listed.h"
#include "base/progress_line.h"
#include "crema/error.h"
#include "data/databases/annotated_record.h"
#include "data/databases/dataset_split.h"
#include "data/databases/dataset_writer.h"
#include "data/databases/datum.h"
#include "data/databases/record_source.h"
#include "data/files/class_names.h"
#include "data/files/image_folder.h"
#include "data/loaders/ordered_work.h"
#include "image/codec.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

// Decodes every image of the list; those that are not whole go from it to `broken`.
void TakeOutBroken(int threads, ProgressLine* progress, ImageList* list, Dataset* dataset) {
  struct Checked {
    std::string problem;
    int64_t bytes = 0;
    Image image;
  };
  std::vector<ImageList::Entry> whole;
  WorkInOrder<Checked>(
      static_cast<int64_t>(list->entries.size()), WorkThreads(threads),
      [&](int64_t i, int, Checked* checked) {
        try {
          const std::vector<uint8_t> bytes = ReadFileBytes(list->PathOf(static_cast<size_t>(i)));
          checked->bytes = static_cast<int64_t>(bytes.size());
          checked->problem = DecodeImage(bytes, {}, &checked->image);
          if (list->entries[static_cast<size_t>(i)].path.find('\n') != std::string::npos) {
            checked->problem = "has the end of a line in its name, which no list can hold";
          }
        } catch (const EnvironmentError& error) {
          checked->problem = error.what();
        }
      },
      [&](int64_t i, const Checked& checked) {
        const auto at = static_cast<size_t>(i);
        progress->Add(1, checked.bytes);
        if (checked.problem.empty()) {
          whole.push_back(list->entries[at]);
          return;
        }
        progress->Say(list->PathOf(at) + " " + checked.problem);
        dataset->broken.emplace_back(list->PathOf(at), checked.problem);
      });
  list->entries = std::move(whole);
}

ImageList Absolute(ImageList list) {
  list.root = fs::absolute(list.root).lexically_normal().string();
  return list;
}

void CheckClasses(const ImageList& list, const std::vector<std::string>& labels, const std::string& what) {
  std::vector<int64_t> counts(labels.size());
  for (const ImageList::Entry& entry : list.entries) ++counts[static_cast<size_t>(entry.label)];
  for (size_t label = 0; label < labels.size(); ++label) {
    if (counts[label] > 0) continue;
    throw UserError("class \"" + labels[label] + "\" has no image to " + what +
                    " with; every class needs at least two that can be read");
  }
}

void FromFolder(const DatasetRequest& request, Dataset* dataset) {
  const auto [train, validation] = FindParts(request.data);
  ProgressLine progress("images");
  const auto list_folder = [dataset](const std::string& folder) {
    LeftOut left_out;
    ImageList list = Absolute(ListImageFolder(folder, &left_out));
    if (!left_out.loose.empty()) {
      dataset->warnings.Warning({folder, 0, 0}, "has " + std::to_string(left_out.loose.size()) +
                                                    " images that lie in no folder of a class, as \"" +
                                                    left_out.loose[0] + "\"; they are left out");
    }
    return list;
  };
  if (!train.empty()) {
    dataset->train_list = list_folder(train);
    dataset->validation_list = list_folder(validation);
    if (dataset->train_list.labels != dataset->validation_list.labels) {
      throw UserError("\"" + train + "\" and \"" + validation +
                      "\" do not have the same classes (folders); each class needs images in both");
    }
    dataset->labels = dataset->train_list.labels;
    progress.SetTotal(
        static_cast<int64_t>(dataset->train_list.entries.size() + dataset->validation_list.entries.size()));
    TakeOutBroken(request.threads, &progress, &dataset->train_list, dataset);
    TakeOutBroken(request.threads, &progress, &dataset->validation_list, dataset);
  } else {
    ImageList all = list_folder(request.data);
    dataset->labels = all.labels;
    progress.SetTotal(static_cast<int64_t>(all.entries.size()));
    TakeOutBroken(request.threads, &progress, &all, dataset);
    std::vector<int> labels;
    for (const ImageList::Entry& entry : all.entries) labels.push_back(entry.label);
    const std::vector<DatasetPart> parts = {{"train", 1 - request.validation_share}, {"val", request.validation_share}};
    const std::vector<int> part = SplitByClass(labels, parts, request.seed);
    for (ImageList* list : {&dataset->train_list, &dataset->validation_list}) {
      list->root = all.root;
      list->labels = all.labels;
    }
    for (size_t i = 0; i < part.size(); ++i) {
      (part[i] == 0 ? dataset->train_list : dataset->validation_list).entries.push_back(all.entries[i]);
    }
  }
  CheckClasses(dataset->train_list, dataset->labels, "train");
  CheckClasses(dataset->validation_list, dataset->labels, "validate");
  for (const std::string& sentence : LookAlikes(dataset->labels)) {
    dataset->warnings.Warning({request.data, 0, 0}, sentence);
  }
  dataset->counts = ClassCounts(dataset->labels, {"train", "val"});
  for (const auto& [list, part] :
       {std::pair(&dataset->train_list, size_t{0}), std::pair(&dataset->validation_list, size_t{1})}) {
    for (const ImageList::Entry& entry : list->entries)
      ++dataset->counts.counts[static_cast<size_t>(entry.label)][part];
  }
  dataset->train_count = static_cast<int64_t>(dataset->train_list.entries.size());
  dataset->validation_count = static_cast<int64_t>(dataset->validation_list.entries.size());
}

struct Classes {
  std::map<int, int64_t> counts;  // of records
  uint64_t largest_at = 0;        // a record of the largest label
  int channels = 0;               // of the images; 0: they are compressed
};

Classes ClassesOf(const RecordSource& source, const std::string& path) {
  if (HoldsAnnotated(source)) {
    throw UserError(Location{path},
                    "holds images with boxes (AnnotatedDatum); fine-tuning is for classes: train a detector on it");
  }
  Classes classes;
  for (uint64_t i = 0; i < source.count(); ++i) {
    DatumView datum;
    if (const char* damage = ParseDatum(source.Peek(i), &datum)) {
      throw UserError(DescribeRecord(source, i) + " is not a readable Datum: " + damage + "; make the database anew");
    }
    if (datum.label_count > 0) {
      throw UserError(
          DescribeRecord(source, i) + " has " + std::to_string(datum.label_count) +
          " labels instead of a class; fine-tuning is for classes: make the database without --label_count, " +
          "or train a net of your own on it");
    }
    if (datum.label < 0) {
      throw UserError(DescribeRecord(source, i) + " has the label " + std::to_string(datum.label) +
                      "; classes are numbered from 0 on");
    }
    if (i == 0 && !datum.encoded) classes.channels = datum.size.channels;
    if (classes.counts.empty() || datum.label > classes.counts.rbegin()->first) classes.largest_at = i;
    ++classes.counts[datum.label];
  }
  return classes;
}

int LargestIn(const Classes& classes) { return classes.counts.empty() ? 0 : classes.counts.rbegin()->first; }

// A class for each number up to a mistaken one would make an enormous net.
void CheckLargest(const Classes& classes, const RecordSource& source, int64_t train_count) {
  const int largest = LargestIn(classes);
  if (largest < train_count) return;
  throw UserError(DescribeRecord(source, classes.largest_at) + " has the label " + std::to_string(largest) +
                  ", which makes " + std::to_string(int64_t{largest} + 1) + " classes, but there are " +
                  std::to_string(train_count) + " records to train with; number the classes from 0 on without gaps");
}

void WarnOfUntrained(const Classes& train, const Classes& validation, Dataset* dataset) {
  std::vector<std::string> untrained;
  int64_t judged = 0;
  for (int label = 0; label < static_cast<int>(dataset->labels.size()); ++label) {
    if (train.counts.count(label) > 0) continue;
    untrained.push_back(dataset->labels[static_cast<size_t>(label)]);
    const auto found = validation.counts.find(label);
    if (found != validation.counts.end()) judged += found->second;
  }
  if (untrained.empty()) return;
  dataset->warnings.Warning(
      {dataset->train_path, 0, 0},
      "has no record of " + std::to_string(untrained.size()) + " of " + std::to_string(dataset->labels.size()) +
          " classes (" + Listed(untrained, {.most = 5}) + ")" +
          (judged > 0 ? ", which " + std::to_string(judged) + " of those to validate with have" : ""));
}

// Of --labels, or of the database's own file where that is one; else they are numbered.
std::vector<std::string> NamesOfClasses(const DatasetRequest& request, const std::string& database,
                                        Diagnostics* warnings, std::string* file) {
  *file = request.labels.empty() ? LabelsBeside(database) : request.labels;
  if (file->empty()) return {};
  if (!request.labels.empty()) return ReadLabels(*file);
  try {
    return ReadClassList(*file).names;
  } catch (const UserError& error) {
    warnings->Warning({database, 0, 0}, "\"" + *file + "\" has the name of a list of its classes, but " + error.what() +
                                            "; the classes are numbered, unless --labels=FILE names them");
    file->clear();
    return {};
  }
}

void FromDatabases(const DatasetRequest& request, const std::string& train, const std::string& validation,
                   Dataset* dataset) {
  dataset->database = true;
  dataset->train_path = fs::absolute(train).lexically_normal().string();
  dataset->validation_path = fs::absolute(validation).lexically_normal().string();
  std::error_code ignored;
  if (fs::equivalent(train, validation, ignored)) {
    dataset->warnings.Warning({dataset->validation_path, 0, 0},
                              "is trained with, too: validation says nothing about other images");
  }
  const auto train_source = OpenRecordSource(train), validation_source = OpenRecordSource(validation);
  dataset->train_count = static_cast<int64_t>(train_source->count());
  dataset->validation_count = static_cast<int64_t>(validation_source->count());
  const Classes trained = ClassesOf(*train_source, train), judged = ClassesOf(*validation_source, validation);
  dataset->channels = trained.channels;
  const int largest = std::max(LargestIn(trained), LargestIn(judged));
  std::string labels;
  dataset->labels = NamesOfClasses(request, train, &dataset->warnings, &labels);
  if (labels.empty()) {
    CheckLargest(trained, *train_source, dataset->train_count);
    CheckLargest(judged, *validation_source, dataset->train_count);
    for (int label = 0; label <= largest; ++label) dataset->labels.push_back(std::to_string(label));
  } else {
    for (const std::string& database : {train, validation}) {
      CheckClassesOf(database, {labels, dataset->labels}, &dataset->warnings);
    }
    if (largest >= static_cast<int>(dataset->labels.size())) {
      const bool of_train = largest == LargestIn(trained);
      throw UserError({labels, 0, 0}, "names " + std::to_string(dataset->labels.size()) + " classes, but " +
                                          DescribeRecord(of_train ? *train_source : *validation_source,
                                                         of_train ? trained.largest_at : judged.largest_at) +
                                          " is of class " + std::to_string(largest) + "; add the missing names");
    }
  }
  WarnOfUntrained(trained, judged, dataset);
  dataset->counts = ClassCounts(dataset->labels, {"train", "val"});
  for (const auto& [classes, part] : {std::pair(&trained, size_t{0}), std::pair(&judged, size_t{1})}) {
    for (const auto& [label, count] : classes->counts) {
      dataset->counts.counts[static_cast<size_t>(label)][part] = count;
    }
  }
}

// What a way of giving data has no use for.
void Refuse(const std::string& flag, const std::string& value, const std::string& why) {
  if (!value.empty()) throw UserError(flag + "=" + value + ": " + why + "; leave " + flag + " out");
}

}  // namespace

Dataset FindDataset(const DatasetRequest& request) {
  Dataset dataset;
  const std::string &data = request.data, train = data + "_train_lmdb", validation = data + "_val_lmdb";
  std::error_code ignored;
  if (IsDatabaseFolder(data)) {
    OpenRecordSource(data);  // a LevelDB is to be converted before all else
    if (request.validation.empty()) {
      throw UserError("--data=" + data + " is a database; give another one to validate with: --val=DB");
    }
    FromDatabases(request, data, request.validation, &dataset);
  } else if (IsDatabaseFolder(train) && IsDatabaseFolder(validation)) {
    Refuse("--val", request.validation, "\"" + validation + "\" belongs to --data=" + data + " and is validated with");
    FromDatabases(request, train, validation, &dataset);
  } else if (fs::is_directory(data, ignored)) {
    Refuse("--val", request.validation,
           "it goes with a database in --data; of a folder of images, its folder val, or a part of all, is validated "
           "with");
    Refuse("--labels", request.labels, "the names of the folders are those of the classes");
    FromFolder(request, &dataset);
  } else {
    throw UserError("--data=" + data + ": there is neither such a folder nor \"" + train + "\" with \"" + validation +
                    "\"; give a folder with one folder of images per class, or what convert_imageset --split made");
  }
  if (dataset.labels.size() < 2) {
    const bool undivided = !dataset.database && dataset.labels[0] == "train";
    throw UserError("--data=" + data + " has one class, \"" + dataset.labels[0] + "\"; at least two can be told apart" +
                    (undivided ? ", or a folder val belongs beside train" : ""));
  }
  return dataset;
}

}  // namespace crema
