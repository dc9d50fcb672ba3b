#include "inference/own_images.h"

#include <string>
#include <utility>

#include "base/paths.h"
#include "data/record_source.h"

namespace crema {

ImageList ReadOwnList(const ScoringNet& scoring) {
  ImageList list = ReadImageList(scoring.list, scoring.list_root, scoring.list_label_count);
  if (!list.root.empty()) return list;
  const std::string& first = list.entries[0].path;
  const std::string found = FindFile(first, {scoring.folder});
  list.root = found.substr(0, found.size() - first.size());
  return list;
}

std::shared_ptr<const ImageItems> OwnImages(const ScoringNet& scoring) {
  if (!scoring.database.empty() && RecordSourceExists(scoring.database)) {
    return std::make_shared<const DatabaseImages>(OpenRecordSource(scoring.database));
  }
  if (scoring.list.empty() || !Exists(scoring.list)) return nullptr;
  return std::make_shared<const ImageFiles>(ReadOwnList(scoring), true, true);
}

}  // namespace crema
