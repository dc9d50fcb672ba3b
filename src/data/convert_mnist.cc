#include "data/convert_mnist.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/idx_file.h"
#include "data/lmdb_writer.h"

namespace crema {

MnistConversion ConvertMnist(const std::string& images_path, const std::string& labels_path,
                             const std::string& database, bool replace, ProgressLine* progress) {
  IdxReader images(images_path, 3, "images"), labels(labels_path, 1, "labels");
  if (images.count() != labels.count()) {
    throw UserError("\"" + images_path + "\" holds " + std::to_string(images.count()) + " images, but \"" +
                    labels_path + "\" holds " + std::to_string(labels.count()) +
                    " labels; do they belong together (train, test)?");
  }
  LmdbWriter writer(database, replace ? LmdbWriter::Existing::kReplace : LmdbWriter::Existing::kRefuse);
  MnistConversion done{images.count(), images.extents()[1], images.extents()[2], 255, 0};
  if (progress) progress->SetTotal(done.records);
  Datum datum;
  datum.set_channels(1);
  datum.set_height(static_cast<int32_t>(done.height));
  datum.set_width(static_cast<int32_t>(done.width));
  std::vector<uint8_t> image(images.item_size());
  std::string value;
  for (int64_t i = 0; i < done.records; ++i) {
    uint8_t label;
    images.Read(image);
    labels.Read({&label, 1});
    datum.set_data(image.data(), image.size());
    datum.set_label(label);
    datum.SerializeToString(&value);
    char key[24];
    std::snprintf(key, sizeof(key), "%08lld", static_cast<long long>(i));
    writer.Put(key, value);
    if (progress) progress->Add(1, static_cast<int64_t>(value.size()));
    done.min_label = std::min<int>(done.min_label, label);
    done.max_label = std::max<int>(done.max_label, label);
  }
  images.ExpectEnd();
  labels.ExpectEnd();
  writer.Commit();
  return done;
}

}  // namespace crema
