#include "data/convert/convert_mnist.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/output_path.h"
#include "base/random.h"
#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/databases/lmdb_writer.h"
#include "data/files/idx_file.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

// Both files, which belong together, and the database that becomes of them.
struct Conversion {
  Conversion(const std::string& images_path, const std::string& labels_path, const std::string& database, int channels,
             bool replace, ProgressLine* line)
      : images(images_path, 3, "images"), labels(labels_path, 1, "labels"), progress(line) {
    if (images.count() != labels.count()) {
      throw UserError("\"" + images_path + "\" holds " + std::to_string(images.count()) + " images, but \"" +
                      labels_path + "\" holds " + std::to_string(labels.count()) +
                      " labels; do they belong together (train, test)?");
    }
    RefuseOutputInInputs(database, {images_path, labels_path});
    writer.emplace(database, replace ? LmdbWriter::Existing::kReplace : LmdbWriter::Existing::kRefuse);
    done.height = images.extents()[1];
    done.width = images.extents()[2];
    if (progress) progress->SetTotal(images.count());
    datum.set_channels(channels);
    datum.set_height(static_cast<int32_t>(done.height));
    datum.set_width(static_cast<int32_t>(done.width));
  }

  void Put(int label) {
    datum.set_label(label);
    value = WireBytes(datum);
    writer->Put(RecordKey(static_cast<uint64_t>(done.records++), digits), value);
    if (progress) progress->Add(1, static_cast<int64_t>(value.size()));
    done.min_label = std::min(done.min_label, label);
    done.max_label = std::max(done.max_label, label);
  }

  IdxReader images, labels;
  ProgressLine* progress;
  const int digits = KeyDigits(static_cast<uint64_t>(images.count()));
  std::optional<LmdbWriter> writer;
  Datum datum;
  std::string value;
  MnistConversion done{0, 0, 0, 255, 0};
};

}  // namespace

MnistConversion ConvertMnist(const std::string& images, const std::string& labels, const std::string& database,
                             bool replace, ProgressLine* progress) {
  Conversion conversion(images, labels, database, 1, replace, progress);
  std::vector<uint8_t> image(conversion.images.item_size());
  for (int64_t i = 0; i < conversion.images.count(); ++i) {
    uint8_t label;
    conversion.images.Read(image);
    conversion.labels.Read({&label, 1});
    conversion.datum.set_data(image.data(), image.size());
    conversion.Put(label);
  }
  conversion.images.ExpectEnd();
  conversion.labels.ExpectEnd();
  conversion.writer->Commit();
  return conversion.done;
}

MnistConversion ConvertMnistPairs(const std::string& images, const std::string& labels, const std::string& database,
                                  bool replace, uint64_t seed, ProgressLine* progress) {
  Conversion conversion(images, labels, database, 2, replace, progress);
  const auto count = static_cast<size_t>(conversion.images.count()),
             size = static_cast<size_t>(conversion.images.item_size());
  // They grow with what is there: a damaged header says any number.
  std::vector<uint8_t> pixels, classes;
  for (size_t i = 0; i < count; ++i) {
    pixels.resize((i + 1) * size);
    classes.resize(i + 1);
    conversion.images.Read({pixels.data() + i * size, size});
    conversion.labels.Read({&classes[i], 1});
  }
  conversion.images.ExpectEnd();
  conversion.labels.ExpectEnd();
  const RandomStream random(seed, 0);
  for (size_t i = 0; i < count; ++i) {
    const size_t pair[] = {random.Below(2 * i, count), random.Below(2 * i + 1, count)};
    std::string& data = *conversion.datum.mutable_data();
    data.clear();
    for (const size_t image : pair) data.append(reinterpret_cast<const char*>(pixels.data()) + image * size, size);
    conversion.Put(classes[pair[0]] == classes[pair[1]] ? 1 : 0);
  }
  conversion.writer->Commit();
  return conversion.done;
}

}  // namespace crema
