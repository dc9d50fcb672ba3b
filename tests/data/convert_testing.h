// What the tests of conversions share.
#ifndef CREMA_TESTS_DATA_CONVERT_TESTING_H_
#define CREMA_TESTS_DATA_CONVERT_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/progress_line.h"
#include "crema/data.pb.h"
#include "data/convert/convert_images.h"
#include "data/data_testing.h"
#include "data/databases/record_source.h"
#include "data/files/image_folder.h"
#include "image/codec.h"

namespace crema::testing {

// Collects what a conversion says.
class SilentProgress {
 public:
  std::string text;
  ProgressLine line{"records", Terminal{.write = [this](const std::string& more) { text += more; },
                                        .columns = [] { return 80; },
                                        .seconds = [] { return 0.0; },
                                        .moves_cursor = false}};
};

// The images below a folder, whose folders are classes.
inline ImageList FolderList(const std::string& folder) {
  LeftOut left_out;
  return ListImageFolder(folder, &left_out);
}

// What is said meanwhile.
inline std::string Convert(const ImageList& list, const ImageConversion& how, const DatasetTarget& target) {
  SilentProgress progress;
  ConvertImages(list, how, target, &progress.line);
  return progress.text;
}

// A smooth image that differs for every `number`.
inline Image Picture(int number, int height, int width, int channels) {
  Image image;
  image.Resize(height, width, channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < image.width * channels; ++x) {
      image.row(y)[x] = static_cast<uint8_t>(3 * y + x + 17 * number);
    }
  }
  return image;
}

inline std::string Bytes(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// FOLDER/cat/0.jpg, 1.jpg, ... and FOLDER/dog/0.png, ...: `count` each, of different sizes.
inline void WritePictures(const std::string& folder, int count) {
  for (const char* name : {"cat", "dog"}) std::filesystem::create_directories(folder + "/" + name);
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    WriteFile(folder + "/cat/" + number + ".jpg", Bytes(EncodeJpeg(Picture(i, 20 + i, 30, 3))));
    WriteFile(folder + "/dog/" + number + ".png", Bytes(EncodePng(Picture(100 + i, 16, 12 + i, 3))));
  }
}

inline Datum DatumOf(const RecordSource& source, uint64_t i) {
  Datum datum;
  const auto bytes = source.Read(i);
  EXPECT_TRUE(datum.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return datum;
}

// All keys and values.
inline std::string ContentOf(const std::string& database) {
  const auto source = OpenRecordSource(database);
  std::string content;
  source->VisitKeys([&](uint64_t i, const std::string& key) {
    const auto bytes = source->Read(i);
    content += key + "=" + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + "\n";
    return true;
  });
  return content;
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_CONVERT_TESTING_H_
