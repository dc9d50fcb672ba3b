#include "data/convert/convert_kitti.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <vector>

#include "base/paths.h"
#include "base/random.h"
#include "crema/error.h"
#include "data/databases/lmdb_writer.h"
#include "data/files/image_folder.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

// Remembers what becomes of the objects of each image that is written, and writes that into a database of its own.
class LabelRows : public RecordForm {
 public:
  LabelRows(const KittiConversion& conversion, const ImageList& list, std::vector<std::vector<KittiObject>> objects,
            const std::string& database, LmdbWriter::Existing existing)
      : conversion_(conversion),
        list_(list),
        objects_(std::move(objects)),
        rows_(objects_.size()),
        written_(objects_.size(), 0),
        database_(database, existing) {}

  void Write(size_t i, const ImageExtent& file, const ImageSize& stored, Datum* datum, std::string* value,
             std::vector<std::string>*) const override {
    const ImageConversion& how = conversion_.how;
    const int height = how.pad_height > 0 ? how.pad_height : file.height;
    const int width = how.pad_width > 0 ? how.pad_width : file.width;
    const auto by = [](int to, int from) { return static_cast<float>(to) / static_cast<float>(from); };
    rows_[i] = DigitsRows(objects_[i], conversion_.classes, conversion_.min_side, by(stored.width, width),
                          by(stored.height, height));
    written_[i] = 1;
    // Of encoded images, too: DIGITS' have their extents.
    datum->set_channels(stored.channels);
    datum->set_height(stored.height);
    datum->set_width(stored.width);
    *value = WireBytes(*datum);
  }

  std::function<void()> Finish() override {
    size_t most = 0;
    for (size_t i = 0; i < rows_.size(); ++i) most = std::max(most, written_[i] ? rows_[i].size() / kDigitsNumbers : 0);
    done_.most_rows = static_cast<int64_t>(most) + 1;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!written_[i]) continue;
      Datum datum;
      datum.set_channels(1);
      datum.set_height(static_cast<int>(most) + 1);
      datum.set_width(kDigitsNumbers);
      datum.set_label(0);
      std::vector<float> values = {static_cast<float>(rows_[i].size() / kDigitsNumbers), kDigitsNumbers};
      values.resize(kDigitsNumbers);
      values.insert(values.end(), rows_[i].begin(), rows_[i].end());
      values.resize((most + 1) * kDigitsNumbers);
      datum.mutable_float_data()->Assign(values.begin(), values.end());
      database_.Put(ImageKey(static_cast<int64_t>(i), list_.entries.size(), list_.entries[i].path), WireBytes(datum));
      constexpr size_t kClass = 5;
      for (size_t k = kClass; k < rows_[i].size(); k += kDigitsNumbers) {
        ++(rows_[i][k] > 0 ? done_.objects : done_.ignored);
      }
    }
    database_.Flush();
    return [this] { database_.Commit(); };
  }

  // After Finish.
  const KittiConverted& done() const { return done_; }

 private:
  const KittiConversion& conversion_;
  const ImageList& list_;
  std::vector<std::vector<KittiObject>> objects_;
  mutable std::vector<std::vector<float>> rows_;  // each written by one thread
  mutable std::vector<char> written_;
  LmdbWriter database_;
  KittiConverted done_;
};

ImageList ListImages(const KittiConversion& conversion, uint64_t seed) {
  ImageList list;
  list.root = AsRoot(conversion.images);
  const std::vector<std::string> paths = ImagesBelow(conversion.images);
  if (paths.empty()) throw UserError("there are no images in \"" + conversion.images + "\"");
  for (size_t i = 0; i < paths.size(); ++i) {
    const size_t which = conversion.how.shuffle ? static_cast<size_t>(Permute(seed, 0, i, paths.size())) : i;
    list.entries.push_back({paths[which]});
  }
  return list;
}

std::string LabelsOf(const KittiConversion& conversion, const std::string& image) {
  const std::filesystem::path name = std::filesystem::path(image).stem();
  return (std::filesystem::path(conversion.labels) / name).string() + ".txt";
}

std::vector<std::vector<KittiObject>> ReadAllLabels(const KittiConversion& conversion, const ImageList& list) {
  std::vector<std::vector<KittiObject>> objects;
  Diagnostics mistakes;
  std::map<std::string, size_t> image_of;  // by the files of labels
  for (size_t i = 0; i < list.entries.size() && !mistakes.enough(); ++i) {
    const std::string path = LabelsOf(conversion, list.entries[i].path);
    if (const auto [other, is_new] = image_of.try_emplace(path, i); !is_new) {
      mistakes.Error({}, "\"" + list.PathOf(other->second) + "\" and \"" + list.PathOf(i) +
                             "\" both belong to the file of labels \"" + path +
                             "\"; give images names of their own, or convert their folders one by one");
      continue;
    }
    std::error_code error;
    if (!std::filesystem::exists(path, error) && !error) {
      mistakes.Error({}, "\"" + list.PathOf(i) + "\" has no file of labels \"" + path +
                             "\"; make an empty one where it shows no object, or take the image away");
      continue;
    }
    try {
      objects.push_back(ReadKittiLabels(path));
    } catch (const UserError& failure) {
      for (const Diagnostic& mistake : failure.diagnostics()) mistakes.Error(mistake.where, mistake.message);
    }
  }
  mistakes.ThrowIfErrors();
  return objects;
}

KittiConverted Write(const KittiConversion& conversion, const ImageList& list,
                     std::vector<std::vector<KittiObject>> objects, const DatasetTarget& target,
                     ProgressLine* progress) {
  const auto existing = target.replace ? LmdbWriter::Existing::kReplace : LmdbWriter::Existing::kRefuse;
  LabelRows form(conversion, list, std::move(objects), target.database + "/labels", existing);
  DatasetTarget features = target;
  features.database += "/features";
  ImageConversion how = conversion.how;
  how.shuffle = false;  // the list is
  how.check_size = true;
  const ImagesConverted images = ConvertImages(list, how, features, progress, &form);
  KittiConverted done = form.done();
  done.images = images;
  return done;
}

}  // namespace

KittiConverted ConvertKitti(const KittiConversion& conversion, const DatasetTarget& target, ProgressLine* progress) {
  for (const auto& [folder, what] :
       {std::pair(&conversion.images, "images"), std::pair(&conversion.labels, "labels")}) {
    if (!std::filesystem::is_directory(*folder)) {
      throw UserError("\"" + *folder + "\" is no folder; expected that of the " + what);
    }
  }
  const ImageList list = ListImages(conversion, target.seed);
  std::vector<std::vector<KittiObject>> objects = ReadAllLabels(conversion, list);
  MakeFolder(target.database);
  try {
    return Write(conversion, list, std::move(objects), target, progress);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(target.database, ignored);  // where it is empty
    throw;
  }
}

}  // namespace crema
