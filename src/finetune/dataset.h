// What a net is fine-tuned on: folders of images or databases, for training and for validation.
#ifndef CREMA_FINETUNE_DATASET_H_
#define CREMA_FINETUNE_DATASET_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "crema/error.h"
#include "data/files/class_names.h"
#include "data/files/image_list.h"

namespace crema {

struct DatasetRequest {
  // A folder with one folder of images per class; one with the folders train and val (or valid, validation, test) of
  // that kind; the beginning of the names that convert_imageset --split gave ("pets" for pets_train_lmdb, pets_val_lmdb
  // and pets_labels.txt); or a database, and then `validation` is another one.
  std::string data, validation;
  std::string labels;             // file with the names of the classes; empty: pets_labels.txt, else numbers
  double validation_share = 0.1;  // of each class, where the data are not divided
  uint64_t seed = 1;              // which images those are
  int threads = 0;                // that look whether images are whole; 0: one per core
};

struct Dataset {
  bool database = false;
  // Databases: their paths. Else lists, whose paths are below `root` of each.
  std::string train_path, validation_path;
  ImageList train_list, validation_list;
  int64_t train_count = 0, validation_count = 0;
  int channels = 0;  // of a database's images; 0: not known
  std::vector<std::string> labels;
  ClassCounts counts;  // to train and to validate with
  // Images that cannot be decoded, which are in no list: path, and what is wrong.
  std::vector<std::pair<std::string, std::string>> broken;
  Diagnostics warnings;
};

// Looks at all image files, in parallel, with progress on stderr; of databases at the labels. Throws UserError where
// something is missing, with the remedy.
Dataset FindDataset(const DatasetRequest& request);

}  // namespace crema

#endif  // CREMA_FINETUNE_DATASET_H_
