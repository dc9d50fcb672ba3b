// Images with annotations, to convert.
#ifndef CREMA_TESTS_DATA_CONVERT_ANNOTATED_TESTING_H_
#define CREMA_TESTS_DATA_CONVERT_ANNOTATED_TESTING_H_

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "crema/annotation.pb.h"
#include "data/convert/convert_annotated.h"
#include "data/convert_testing.h"
#include "data/files/annotation_file.h"
#include "data/image_testing.h"

namespace crema {

using testing::ExpectThrows;
using testing::ReadFile;
using testing::SilentProgress;
using testing::WriteFile;

inline constexpr const char* kClasses = R"(
  item { name: "none_of_the_above" label: 0 display_name: "background" }
  item { name: "cat" label: 1 } item { name: "dog" label: 2 } item { name: "hound" label: 2 })";

inline std::string Object(const std::string& name, const std::string& box, bool difficult = false) {
  std::string text = "  <object>\n    <name>" + name + "</name>\n    <difficult>" + (difficult ? "1" : "0") +
                     "</difficult>\n    <bndbox>";
  std::istringstream corners(box);
  std::string corner;
  for (const char* field : {"xmin", "ymin", "xmax", "ymax"}) {
    if (corners >> corner) text += std::string("<") + field + ">" + corner + "</" + field + ">";
  }
  return text + "</bndbox>\n  </object>\n";
}

// Of an image of 40 x 20 pixels.
inline std::string Voc(const std::string& objects, const std::string& width = "40") {
  return "<annotation>\n  <size><width>" + width + "</width><height>20</height><depth>3</depth></size>\n" + objects +
         "</annotation>\n";
}

class ConvertAnnotated : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteFile(folder_ / "map.prototxt", kClasses);
    WriteFile(folder_ / "a.png", testing::Bytes(EncodePng(testing::Picture(1, 20, 40, 3))));
    WriteFile(folder_ / "b.jpg", testing::Bytes(EncodeJpeg(testing::Picture(2, 20, 40, 3))));
  }

  AnnotatedConversion Conversion() const {
    AnnotatedConversion how;
    how.labels = ReadLabelMap(folder_ / "map.prototxt", false);
    return how;
  }

  AnnotationsConverted Convert(const std::string& list, const AnnotatedConversion& how,
                               const std::string& name = "db") {
    WriteFile(folder_ / "list.txt", list);
    SilentProgress progress;
    const auto read = how.format == AnnotatedConversion::Format::kYolo ? ReadYoloImageList : ReadAnnotatedImageList;
    const AnnotationsConverted done = crema::ConvertAnnotated(read(folder_ / "list.txt", folder_.path()), how,
                                                              {.database = folder_ / name}, &progress.line);
    said_ = progress.text;
    return done;
  }

  AnnotatedDatum Record(uint64_t i, const std::string& name = "db") const {
    const auto source = OpenRecordSource(folder_ / name);
    AnnotatedDatum record;
    const auto bytes = source->Read(i);
    EXPECT_TRUE(record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    return record;
  }

  void ExpectSaid(const std::string& text) const { EXPECT_NE(said_.find(text), std::string::npos) << said_; }

  TemporaryFolder folder_;
  std::string said_;
};

}  // namespace crema

#endif  // CREMA_TESTS_DATA_CONVERT_ANNOTATED_TESTING_H_
