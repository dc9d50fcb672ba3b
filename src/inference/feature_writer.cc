#include "inference/feature_writer.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/hdf5.h"
#include "base/output_path.h"
#include "base/paths.h"
#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/databases/lmdb_writer.h"
#include "inference/label_image_writer.h"
#include "report/csv.h"
#include "schema/blob_numbers.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

constexpr size_t kBufferedBytes = 1 << 20;
constexpr int kKeyDigits = 10;                            // of a database; how many records come is not known before
constexpr char kLabel[] = "label", kRecord[] = "record";  // datasets beside those of the blobs

enum class Form { kCsv, kHdf5, kLmdb, kLabelImages };

Form FormOf(const FeatureTarget& target) {
  const std::string& path = target.path;
  if (path.ends_with(".csv")) return Form::kCsv;
  if (path.ends_with(".h5") || path.ends_with(".hdf5")) return Form::kHdf5;
  const std::string folder = WithoutTrailingSlashes(path);  // which a database is
  if (folder.ends_with("_lmdb") || folder.ends_with(".lmdb")) return Form::kLmdb;
  if (target.path.ends_with("/")) return Form::kLabelImages;
  throw UserError(Location{target.path},
                  "its ending does not say what to write; end it in .csv, in .h5 or .hdf5, in _lmdb or .lmdb for a "
                  "database, or in / for a folder of label images (PNG)");
}

class CsvWriter : public FeatureWriter {
 public:
  CsvWriter(const FeatureTarget& target, const FeatureBlob& blob)
      : file_(target.path, {.replace = target.replace}), count_(blob.shape.count()) {
    text_ = target.labels == 0 ? "record,label" : "record";
    for (size_t i = 0; i < target.labels; ++i) text_ += ",label_" + std::to_string(i);
    for (int64_t i = 0; i < count_; ++i) text_ += "," + std::to_string(i);
    text_ += "\n";
  }

  void Put(const std::string& record, const FeatureLabel& label, const std::vector<const float*>& rows) override {
    text_ += CsvField(record);
    if (label.several.empty()) text_ += "," + (label.number >= 0 ? std::to_string(label.number) : "");
    for (const float number : label.several) Add(number);
    for (int64_t i = 0; i < count_; ++i) Add(rows[0][i]);
    text_ += '\n';
    if (text_.size() >= kBufferedBytes) Flush();
  }

  void Commit() override {
    Flush();
    file_.Commit();
  }

 private:
  // The shortest text that is read as the same number.
  void Add(float value) {
    char number[32];
    text_ += ',';
    text_.append(number, std::to_chars(number, number + sizeof number, value).ptr);
  }

  void Flush() {
    file_.Write(text_);
    text_.clear();
  }

  AtomicFile file_;
  const int64_t count_;
  std::string text_;
};

class Hdf5FeatureWriter : public FeatureWriter {
 public:
  Hdf5FeatureWriter(const FeatureTarget& target, const std::vector<FeatureBlob>& blobs)
      : path_(target.path),
        several_(static_cast<int64_t>(target.labels)),
        target_(path_, {.replace = target.replace}),
        file_(CreateHdf5(target_.temporary())) {
    for (const FeatureBlob& blob : blobs) {
      Rows& rows = rows_.emplace_back();
      has_label_blob_ |= blob.name == kLabel;
      rows.name = blob.name;
      rows.extents = {0};
      rows.extents.insert(rows.extents.end(), blob.shape.dims().begin(), blob.shape.dims().end());
      rows.count = static_cast<size_t>(blob.shape.count());
    }
  }

  void Put(const std::string& record, const FeatureLabel& label, const std::vector<const float*>& rows) override {
    if ((label.number >= 0 || several_ > 0) && has_label_blob_) {
      throw UserError(Location{path_}, "holds the labels of records as \"label\", and " + record +
                                           " has one, so that it cannot hold the blob \"label\", too; give the blob "
                                           "another name in the net file, or write it as .csv");
    }
    records_ += record + "\n";
    if (several_ == 0) labels_.push_back(label.number < 0 ? -1 : static_cast<float>(label.number));
    labels_.insert(labels_.end(), label.several.begin(), label.several.end());
    labelled_ |= label.number >= 0 || several_ > 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].values.insert(rows_[i].values.end(), rows[i], rows[i] + rows_[i].count);
      ++rows_[i].extents[0];
      if (rows_[i].values.size() * sizeof(float) >= kBufferedBytes) Flush(&rows_[i]);
    }
  }

  void Commit() override {
    for (Rows& rows : rows_) Flush(&rows);
    std::vector<int64_t> extents = {static_cast<int64_t>(labels_.size())};
    if (several_ > 0) extents = {extents[0] / several_, several_};
    if (labelled_) file_->Write(kLabel, extents, labels_.data());
    if (!records_.empty()) file_->WriteText(kRecord, records_);
    file_->Close();
    target_.Commit();
  }

 private:
  struct Rows {
    std::string name;
    std::vector<int64_t> extents;  // of `values`
    size_t count = 0;              // numbers of a row
    std::vector<float> values;     // not yet in the file
  };

  void Flush(Rows* rows) {
    if (rows->extents[0] == 0) return;
    file_->Append(rows->name, rows->extents, rows->values.data());
    rows->values.clear();
    rows->extents[0] = 0;
  }

  const std::string path_;
  const int64_t several_;
  AtomicFile target_;
  std::unique_ptr<Hdf5Writer> file_;
  std::vector<Rows> rows_;
  std::vector<float> labels_;
  std::string records_;
  bool labelled_ = false, has_label_blob_ = false;
};

class LmdbFeatureWriter : public FeatureWriter {
 public:
  LmdbFeatureWriter(const FeatureTarget& target, const FeatureBlob& blob)
      : writer_(target.path, target.replace ? LmdbWriter::Existing::kReplace : LmdbWriter::Existing::kRefuse),
        count_(static_cast<int>(blob.shape.count())) {
    // A Datum has three axes.
    const auto extent = [&](int axis) { return axis < blob.shape.axes() ? static_cast<int32_t>(blob.shape[axis]) : 1; };
    datum_.set_channels(extent(0));
    datum_.set_height(extent(1));
    datum_.set_width(extent(2));
  }

  void Put(const std::string&, const FeatureLabel& label, const std::vector<const float*>& rows) override {
    if (label.several.empty()) datum_.set_label(static_cast<int32_t>(std::max<int64_t>(label.number, -1)));
    datum_.mutable_labels()->Assign(label.several.begin(), label.several.end());
    std::copy(rows[0], rows[0] + count_, MakeNumbers(datum_.mutable_float_data(), count_));
    writer_.Put(RecordKey(writer_.records(), kKeyDigits), WireBytes(datum_));
  }

  void Commit() override { writer_.Commit(); }

 private:
  LmdbWriter writer_;
  const int count_;
  Datum datum_;
};

// Names of datasets: none is used twice, or a group that another one lies in. A blob may have the name of the labels
// as long as the records have none.
void CheckNames(const FeatureTarget& target, const std::vector<FeatureBlob>& blobs) {
  std::vector<std::string> names = {kLabel, kRecord};
  for (const FeatureBlob& blob : blobs) {
    for (const std::string& other : names) {
      if (blob.name == kLabel ||
          (blob.name != other && !blob.name.starts_with(other + "/") && !other.starts_with(blob.name + "/")))
        continue;
      throw UserError(Location{target.path}, "cannot hold the blob \"" + blob.name + "\" beside the dataset \"" +
                                                 other + "\"; write it to a file of its own, or as .csv");
    }
    names.push_back(blob.name);
  }
}

}  // namespace

void CheckFeatureTarget(const FeatureTarget& target, size_t blobs, int views) {
  const Form form = FormOf(target);
  if (form == Form::kLabelImages && views > 1) {
    throw UserError(Location{target.path},
                    "is a folder of label images, but pixels of --views=" + std::to_string(views) +
                        " are of other places in each view, of which there is no mean; leave "
                        "--views out");
  }
  if (form != Form::kHdf5 && blobs > 1) {
    throw UserError(Location{target.path}, "takes one blob, but " + std::to_string(blobs) +
                                               " are to be written; write them to a .h5 file, which holds a dataset of "
                                               "each, or one by one");
  }
  std::error_code ignored;
  const std::string path = WithoutTrailingSlashes(target.path);  // else files would not be there
  if (form == Form::kLabelImages && IsTaken(path)) {
    if (!std::filesystem::is_directory(path, ignored)) {
      throw UserError(Location{target.path}, "exists already, and is no folder; choose another name");
    }
    if (target.replace) return;
    throw UserError(Location{target.path},
                    "exists already; choose another name, or pass --force to write into it, over files of the same "
                    "names");
  }
  if (!target.replace) RefuseTaken(path);
}

std::unique_ptr<FeatureWriter> MakeFeatureWriter(const FeatureTarget& target, const std::vector<FeatureBlob>& blobs) {
  CheckFeatureTarget(target, blobs.size());
  const Form form = FormOf(target);
  if (form == Form::kHdf5) {
    CheckNames(target, blobs);
    return std::make_unique<Hdf5FeatureWriter>(target, blobs);
  }
  const FeatureBlob& blob = blobs[0];
  if (form == Form::kCsv) return std::make_unique<CsvWriter>(target, blob);
  if (form == Form::kLabelImages) return MakeLabelImageWriter(target, blob);
  if (blob.shape.axes() > 3) {
    throw UserError(Location{target.path}, "\"" + blob.name + "\" is " + blob.shape.ToString() +
                                               " of each record, and a record of a database has at most three axes; "
                                               "write it to a .h5 file");
  }
  return std::make_unique<LmdbFeatureWriter>(target, blob);
}

}  // namespace crema
