#include "inference/evaluation_data.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/suggest.h"
#include "crema/error.h"
#include "data/databases/annotated_record.h"
#include "data/databases/record_source.h"
#include "data/files/image_folder.h"
#include "inference/own_images.h"
#include "report/classification_report.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

EvaluationData OpenDatabase(const std::string& path) {
  std::shared_ptr<const RecordSource> database = OpenRecordSource(path);
  if (HoldsAnnotated(*database)) {
    throw UserError(
        Location{path},
        "holds images with boxes (AnnotatedDatum), of which no class can be judged; measure a detector with "
        "crema test");
  }
  return {path, std::make_shared<const DatabaseImages>(std::move(database))};
}

}  // namespace

EvaluationData::EvaluationData(std::string name, ImageList list, bool of_layer)
    : name_(std::move(name)),
      items_(std::make_shared<const ImageFiles>(list, true, of_layer)),
      list_(std::move(list)) {}

std::vector<std::string> EvaluationData::MatchClasses(const std::vector<std::string>& labels, int classes) {
  if (list_.labels.empty()) {
    for (const ImageList::Entry& entry : list_.entries) {
      if (entry.label >= 0 && entry.label < classes) continue;
      throw UserError(Location{name_}, "\"" + entry.path + "\" has the label " + std::to_string(entry.label) +
                                           ", but the net tells " + std::to_string(classes) +
                                           (classes == 1 ? " class" : " classes") +
                                           " apart, counted from 0; is it the list of this net?");
    }
    return labels.empty() ? NumberedClasses(classes) : labels;
  }
  if (labels.empty()) {
    if (static_cast<int>(list_.labels.size()) != classes) {
      throw UserError(Location{name_}, "holds folders for " + std::to_string(list_.labels.size()) +
                                           " classes, but the net tells " + std::to_string(classes) +
                                           " apart; give --labels=FILE with the names of all its classes, so that the "
                                           "folders can be matched by name");
    }
    return list_.labels;
  }
  std::vector<int> index_of;
  Diagnostics problems;
  for (const std::string& name : list_.labels) {
    const auto at = std::find(labels.begin(), labels.end(), name);
    index_of.push_back(static_cast<int>(at - labels.begin()));
    if (at == labels.end()) {
      const std::string hint = DidYouMean(name, labels);
      problems.Error({list_.root + name},
                     "is no class of the net" + (hint.empty() ? "; --labels does not have that name" : hint));
    }
  }
  problems.ThrowIfErrors();
  for (ImageList::Entry& entry : list_.entries) entry.label = index_of[entry.label];
  items_ = std::make_shared<const ImageFiles>(list_, true);
  list_.labels.clear();
  return labels;
}

EvaluationData OpenEvaluationData(const std::string& path, const std::string& root, const ScoringNet& scoring) {
  if (path.empty()) {
    if (!scoring.database.empty()) return OpenDatabase(scoring.database);
    if (scoring.list_label_count > 0) {
      throw UserError(Location{scoring.list},
                      "gives numbers (label_count: " + std::to_string(scoring.list_label_count) +
                          ") instead of classes, and only these can be counted; test the net on them with crema test");
    }
    if (!scoring.list.empty()) return {scoring.list, ReadOwnList(scoring), true};
    if (scoring.reader == "DenseImageData" || scoring.reader == "ImageSegData") {
      throw UserError(scoring.transform_at,
                      "the data of the net's TEST phase have label images (" + scoring.reader +
                          "), and only one class of each image can be counted; crema test measures such a net, with "
                          "SegAccuracy and Accuracy layers, and crema extract --output=masks/ writes what it tells of "
                          "each pixel");
    }
    throw UserError(
        "the net names no data for its TEST phase; give the folder of a database, a folder with one folder "
        "of images for each class, or a list of \"path label\" lines");
  }
  if (!fs::exists(path)) throw UserError(Location{path}, "there is no such database, folder or list");
  if (!fs::is_directory(path)) return {path, ReadImageList(path, root)};
  if (!root.empty()) throw UserError(Location{path}, "is a folder, and --root is for lists; leave it out");
  if (IsDatabaseFolder(path)) return OpenDatabase(path);
  LeftOut left_out;
  return {path, ListImageFolder(path, &left_out)};
}

}  // namespace crema
