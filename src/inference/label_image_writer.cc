#include "inference/label_image_writer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/atomic_file.h"
#include "base/number_text.h"
#include "base/paths.h"
#include "crema/error.h"
#include "image/codec.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostClasses = 256;  // of a byte

class LabelImageWriter : public FeatureWriter {
 public:
  LabelImageWriter(const FeatureTarget& target, const FeatureBlob& blob)
      : blob_(blob), path_(WithoutTrailingSlashes(target.path)), keys_(target.keys) {
    const Shape& shape = blob.shape;
    if (shape.axes() != 3 || shape[0] > kMostClasses) {
      throw UserError(Location{target.path},
                      "\"" + blob.name + "\" is " + (shape.axes() == 0 ? "1" : shape.ToString()) +
                          " of each record; images are made of scores, classes x height x width of at most " +
                          std::to_string(kMostClasses) +
                          " classes, or of classes, 1 x height x width, as ArgMax with axis: 1 gives them");
    }
    FindInputs(target.inputs);
    image_.Resize(static_cast<int>(shape[1]), static_cast<int>(shape[2]), 1);
    temporary_ = TemporaryNameOf(path_);
    if (mkdir(temporary_.c_str(), 0755) != 0) Fail("cannot create " + temporary_, errno);
  }

  ~LabelImageWriter() override {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }

  void Put(const std::string& record, const FeatureLabel&, const std::vector<const float*>& rows) override {
    const std::string name = (keys_ ? NameOfKey(record) : fs::path(record).stem().string()) + ".png";
    if (const auto [other, first] = records_.emplace(name, record); !first) {
      throw UserError(Location{record},
                      "would be written as " + name + ", and so would " + other->second + "; " +
                          (keys_ ? "write the numbers to a .h5 file, which holds each under its key"
                                 : "give images of one name one after the other, to folders of their own"));
    }
    if (read_.contains(name)) {
      throw UserError(Location{record},
                      "would be written over " + path_ + "/" + name + ", which is read; write to another folder");
    }
    Draw(record, rows[0]);
    const std::vector<uint8_t> bytes = blob_.probabilities ? EncodePng(image_) : EncodeLabelPng(image_);
    WriteWholeFile(temporary_ + "/" + name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                   {.flush = false});
  }

  void Commit() override {
    SyncFiles(temporary_);
    if (fs::is_directory(path_)) {  // it is to be replaced; what else is in it stays
      for (const auto& [name, record] : records_) Rename(temporary_ + "/" + name, path_ + "/" + name);
      fs::remove(temporary_);
    } else {
      Rename(temporary_, path_);
    }
    temporary_.clear();
    const std::string parent = fs::path(path_).parent_path().string();
    SyncDirectory(parent.empty() ? "." : parent);
  }

 private:
  [[noreturn]] static void Fail(const std::string& what, int error) {
    throw EnvironmentError(what + ": " + WriteFailure(error));
  }

  // Those that lie in the folder, or that links lead to from elsewhere.
  void FindInputs(const std::vector<std::string>& inputs) {
    std::error_code error;
    const fs::path folder = fs::canonical(path_, error);
    if (error) return;  // it is not there yet
    std::map<fs::path, bool> is_folder;
    for (const fs::path input : inputs) {
      const fs::path parent = input.parent_path();
      const auto [known, first] = is_folder.emplace(parent, false);
      if (first) known->second = fs::equivalent(parent.empty() ? "." : parent, folder, error);
      if (known->second) read_.insert(input.filename().string());
      if (!fs::is_symlink(input, error)) continue;
      const fs::path target = fs::canonical(input, error);
      if (!error && target.parent_path() == folder) read_.insert(target.filename().string());
    }
  }

  // The whole key: what tells records apart may stand before a /.
  static std::string NameOfKey(std::string key) {
    if (HasImageName(key)) key.resize(key.rfind('.'));
    std::replace_if(
        key.begin(), key.end(), [](unsigned char c) { return c == '/' || std::iscntrl(c); }, '_');
    return key;
  }

  static void Rename(const std::string& from, const std::string& to) {
    if (rename(from.c_str(), to.c_str()) != 0) Fail("cannot rename " + from + " to " + to, errno);
  }

  void Draw(const std::string& record, const float* values) {
    const int64_t channels = blob_.shape[0], pixels = blob_.shape[1] * blob_.shape[2];
    for (int64_t i = 0; i < pixels; ++i) {
      float number = values[i];
      if (blob_.probabilities) {
        number = std::round(255 * number);
      } else if (channels > 1) {
        int64_t best = 0;
        bool known = !std::isnan(values[i]);
        for (int64_t c = 1; c < channels; ++c) {
          known &= !std::isnan(values[c * pixels + i]);
          if (values[c * pixels + i] > values[best * pixels + i]) best = c;
        }
        number = known ? static_cast<float>(best) : NAN;
      }
      if (!(number >= 0 && number < kMostClasses && std::floor(number) == number)) {
        throw UserError(Location{record},
                        "\"" + blob_.name + "\" has " + FormatNumber(channels > 1 ? number : values[i]) +
                            " at a pixel, which is no class from 0 to " + std::to_string(kMostClasses - 1) +
                            "; name the scores of the classes, or what an ArgMax layer makes of them, or write the "
                            "numbers as they are to a .h5 file");
      }
      image_.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(number);
    }
  }

  const FeatureBlob blob_;
  std::string path_, temporary_;
  const bool keys_;
  std::map<std::string, std::string> records_;  // by file
  std::set<std::string> read_;                  // files of the folder
  Image image_;
};

}  // namespace

std::unique_ptr<FeatureWriter> MakeLabelImageWriter(const FeatureTarget& target, const FeatureBlob& blob) {
  return std::make_unique<LabelImageWriter>(target, blob);
}

}  // namespace crema
