#include "data/convert/convert_cifar.h"

#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/input_file.h"
#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/databases/dataset_writer.h"
#include "data/files/image_list.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr size_t kPlane = 32 * 32, kPixels = 3 * kPlane;

struct File {
  std::string name;
  size_t records;  // that the data set's own has
};

struct Edition {
  std::string name;
  std::vector<File> train, test;
  std::string names_file;
  size_t label_bytes, label_at;
  int classes;
};

Edition EditionOf(const CifarConversion& how) {
  const auto has = [&](const char* file) { return fs::exists(how.input + "/" + file); };
  if (has("train.bin") && !has("data_batch_1.bin")) {
    return {"cifar100",
            {{"train.bin", 50000}},
            {{"test.bin", 10000}},
            how.coarse ? "coarse_label_names.txt" : "fine_label_names.txt",
            2,
            how.coarse ? size_t{0} : size_t{1},
            how.coarse ? 20 : 100};
  }
  if (!has("data_batch_1.bin")) {
    throw UserError("\"" + how.input + "\" holds neither data_batch_1.bin (CIFAR-10) nor train.bin (CIFAR-100); " +
                    "unpack the binary version of the data set and give its folder");
  }
  if (how.coarse) throw UserError("--coarse is of CIFAR-100, but \"" + how.input + "\" holds CIFAR-10; leave it out");
  Edition edition{"cifar10", {}, {{"test_batch.bin", 10000}}, "batches.meta.txt", 1, 0, 10};
  for (int i = 1; i <= 5; ++i) edition.train.push_back({"data_batch_" + std::to_string(i) + ".bin", 10000});
  return edition;
}

std::vector<uint8_t> ReadRecords(const std::string& path, const Edition& edition) {
  if (!fs::exists(path)) throw UserError("\"" + path + "\" does not exist; unpack the whole data set");
  std::vector<uint8_t> bytes = ReadFileBytes(path);
  const size_t record = edition.label_bytes + kPixels;
  if (bytes.empty() || bytes.size() % record != 0) {
    throw UserError("\"" + path + "\" has " + std::to_string(bytes.size()) + " bytes, which is no multiple of the " +
                    std::to_string(record) + " of an image; unpack the binary version again");
  }
  return bytes;
}

void Convert(const CifarConversion& how, const Edition& edition, const std::vector<File>& files, size_t part,
             DatasetWriter* writer, ProgressLine* progress) {
  Datum datum;
  datum.set_channels(3);
  datum.set_height(32);
  datum.set_width(32);
  std::string value;
  uint64_t number = 0, images = 0;
  for (const File& file : files) {
    std::error_code absent;  // told below
    const uintmax_t size = fs::file_size(how.input + "/" + file.name, absent);
    if (!absent) images += size / (edition.label_bytes + kPixels);
  }
  const int digits = KeyDigits(images, 5);  // Caffe's program writes five
  for (const File& file : files) {
    const std::string path = how.input + "/" + file.name;
    const std::vector<uint8_t> bytes = ReadRecords(path, edition);
    if (const size_t records = bytes.size() / (edition.label_bytes + kPixels); records != file.records) {
      progress->Say("warning: \"" + path + "\" holds " + std::to_string(records) + " images, but the data set's file " +
                    "of that name holds " + std::to_string(file.records) +
                    "; unpack it again, unless it is one of your own");
    }
    for (size_t at = 0; at < bytes.size(); at += edition.label_bytes + kPixels) {
      const int label = bytes[at + edition.label_at];
      if (label >= edition.classes) {
        throw UserError("\"" + path + "\" is damaged: image " + std::to_string(at / (edition.label_bytes + kPixels)) +
                        " has label " + std::to_string(label) + ", but there are " + std::to_string(edition.classes) +
                        " classes; unpack it again");
      }
      datum.set_label(label);
      const uint8_t* pixels = bytes.data() + at + edition.label_bytes;
      datum.clear_data();
      for (const size_t plane : {how.bgr ? 2 : 0, 1, how.bgr ? 0 : 2}) {
        datum.mutable_data()->append(reinterpret_cast<const char*>(pixels + plane * kPlane), kPlane);
      }
      value = WireBytes(datum);
      writer->Put(part, RecordKey(number++, digits), value);
      progress->Add(1, static_cast<int64_t>(value.size()));
    }
  }
}

}  // namespace

std::string ConvertCifar(const CifarConversion& how, ProgressLine* progress) {
  const Edition edition = EditionOf(how);
  const std::string names_file = how.input + "/" + edition.names_file;
  std::vector<std::string> labels;
  if (fs::exists(names_file)) {
    labels = ReadLabels(names_file);
  } else {
    progress->Say("note: " + names_file + " is not there: classes have numbers only, and no file of labels is written");
  }
  if (!labels.empty() && labels.size() != static_cast<size_t>(edition.classes)) {
    throw UserError({names_file}, "names " + std::to_string(labels.size()) + " classes, but there are " +
                                      std::to_string(edition.classes) +
                                      "; unpack it again, or remove it to go without names");
  }
  DatasetTarget target;
  target.database = how.output + "/" + edition.name;
  target.parts = {{"train"}, {"test"}};
  target.replace = how.replace;
  DatasetWriter writer(target, labels);
  Convert(how, edition, edition.train, 0, &writer, progress);
  Convert(how, edition, edition.test, 1, &writer, progress);
  writer.Commit();
  return writer.Summary();
}

}  // namespace crema
