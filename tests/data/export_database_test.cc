// Databases of images with objects as files to look at. What others become is in inspect_database_test.cc.
#include "data/databases/export_database.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/input_file.h"
#include "crema/annotation.pb.h"
#include "data/convert_testing.h"
#include "data/data_testing.h"
#include "image/codec.h"
#include "image/draw.h"
#include "temporary_folder.h"

namespace crema {
namespace {

using testing::SilentProgress;

// A grey image of 40 x 60 with one object, and a coloured one without.
void WriteAnnotated(const std::string& path) {
  AnnotatedDatum one, none;
  one.set_type(AnnotatedDatum::BBOX);
  none = one;
  *one.mutable_datum() = testing::ImageDatum(1, 40, 60, -1);
  *none.mutable_datum() = testing::ImageDatum(3, 8, 8, -1);
  AnnotationGroup* const group = one.add_annotation_group();
  group->set_group_label(2);
  NormalizedBBox* const box = group->add_annotation()->mutable_bbox();
  box->set_xmin(0.25f);
  box->set_ymin(0.5f);
  box->set_xmax(0.75f);
  box->set_ymax(1);
  testing::WriteRecords(path, {one.SerializeAsString(), none.SerializeAsString()});
}

TEST(ExportDatabase, DrawsObjects) {
  const TemporaryFolder folder;
  WriteAnnotated(folder / "db");
  const auto source = OpenRecordSource(folder / "db");
  SilentProgress progress;
  DatabaseExport how = {folder / "plain", {}};
  EXPECT_EQ(ExportDatabase(*source, how, &progress.line), 2);
  EXPECT_EQ(testing::Listing(how.folder), "00000000.png 00000001.png");

  how = {.folder = folder / "drawn", .labels = {"background", "cat"}, .draw = true};
  EXPECT_EQ(ExportDatabase(*source, how, &progress.line), 2);
  EXPECT_EQ(testing::Listing(how.folder), "00000000.jpg 00000001.jpg");
  Image plain, drawn;
  ASSERT_EQ(DecodeImage(ReadFileBytes(folder / "plain/00000000.png"), {}, &plain), "");
  const DrawnBox box = {.xmin = 15, .ymin = 20, .xmax = 45, .ymax = 40, .kind = 2, .text = "2"};  // it has no name
  DrawBoxes({&box, 1}, &plain);
  ASSERT_EQ(DecodeImage(EncodeJpeg(plain), {}, &plain), "");
  ASSERT_EQ(DecodeImage(ReadFileBytes(folder / "drawn/00000000.jpg"), {}, &drawn), "");
  EXPECT_EQ(drawn.channels, 3);
  EXPECT_TRUE(std::equal(plain.pixels.begin(), plain.pixels.begin() + static_cast<ptrdiff_t>(plain.size()),
                         drawn.pixels.begin()));
}

TEST(ExportDatabase, DrawsNothingWhereNothingIs) {
  const TemporaryFolder folder;
  testing::WriteDatums(folder / "db", {testing::ImageDatum(3, 4, 5, 1)});
  SilentProgress progress;
  testing::ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*OpenRecordSource(folder / "db"), {.folder = folder / "out", .labels = {}, .draw = true},
                       &progress.line);
      },
      {"no objects", "--draw"});
}

}  // namespace
}  // namespace crema
