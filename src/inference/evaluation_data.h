// Labelled images to score a net on.
#ifndef CREMA_INFERENCE_EVALUATION_DATA_H_
#define CREMA_INFERENCE_EVALUATION_DATA_H_

#include <memory>
#include <string>
#include <vector>

#include "data/files/image_list.h"
#include "inference/image_items.h"
#include "inference/scoring_net.h"

namespace crema {

class EvaluationData {
 public:
  // A database's, whose labels are known when it is read.
  EvaluationData(std::string name, std::shared_ptr<const ImageItems> items)
      : name_(std::move(name)), items_(std::move(items)) {}
  // A list's, with or without names of classes; `of_layer` as of ImageFiles.
  EvaluationData(std::string name, ImageList list, bool of_layer = false);

  const std::string& name() const { return name_; }
  const std::shared_ptr<const ImageItems>& items() const { return items_; }

  // The names of the net's `classes` classes: `labels` where there are any, which a folder's classes are then matched
  // with by name; else those of the folder, which must be as many; else numbers. Throws UserError where names or
  // numbers of the data are none of the net's.
  std::vector<std::string> MatchClasses(const std::vector<std::string>& labels, int classes);

 private:
  std::string name_;
  std::shared_ptr<const ImageItems> items_;
  ImageList list_;  // empty of databases
};

// Opens the folder of a database, a folder with one folder for each class, or a list file whose paths `root` stands
// before; `path` empty: what the net names for its TEST phase. Throws UserError where it is none of them.
EvaluationData OpenEvaluationData(const std::string& path, const std::string& root, const ScoringNet& scoring);

}  // namespace crema

#endif  // CREMA_INFERENCE_EVALUATION_DATA_H_
