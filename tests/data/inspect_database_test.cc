#include "data/databases/inspect_database.h"

#include <gtest/gtest.h>

#include <cmath>

#include "crema/annotation.pb.h"
#include "data/convert/convert_images.h"
#include "data/convert_testing.h"
#include "data/databases/export_database.h"
#include "data/databases/image_statistics.h"
#include "data/databases/mean_file.h"
#include "data/files/image_folder.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::ReadFile;
using testing::SilentProgress;

ImageStatistics StatisticsOf(const std::string& database, int threads = 2) {
  SilentProgress progress;
  return ComputeImageStatistics(*OpenRecordSource(database), threads, &progress.line);
}

void Convert(const std::string& folder, const ImageConversion& how, const std::string& database) {
  LeftOut left_out;
  SilentProgress progress;
  ConvertImages(ListImageFolder(folder, &left_out), how, {.database = database}, &progress.line);
}

Datum FloatDatum(std::vector<float> values, int label) {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(1);
  datum.set_width(static_cast<int>(values.size()));
  datum.set_label(label);
  datum.mutable_float_data()->Add(values.begin(), values.end());
  return datum;
}

TEST(ImageStatistics, EqualPlainSums) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 200, 3, 4, 5);
  const ImageStatistics statistics = StatisticsOf(folder / "db");
  ASSERT_EQ(statistics.mean.size(), 60u);
  double sum[3] = {}, squares[3] = {};
  for (int i = 0; i < 60; ++i) {
    float caffe = 0;
    for (int label = 0; label < 200; ++label) {
      const double value = (i * 7 + label) % 256;
      caffe += static_cast<float>(value);
      sum[i / 20] += value;
      squares[i / 20] += value * value;
    }
    EXPECT_EQ(statistics.mean[static_cast<size_t>(i)], caffe / 200);
  }
  for (size_t c = 0; c < 3; ++c) {
    const double mean = sum[c] / 4000;
    EXPECT_DOUBLE_EQ(statistics.channel_means[c], mean);
    EXPECT_NEAR(statistics.channel_deviations[c], std::sqrt(squares[c] / 4000 - mean * mean), 1e-9);
  }
  WriteMean({statistics.size.shape(), statistics.mean}, folder / "mean");
  EXPECT_EQ(ReadMean(folder / "mean").values, statistics.mean);
  EXPECT_EQ(ReadMean(folder / "mean").shape, (Shape{3, 4, 5}));
}

TEST(ImageStatistics, OfFloatsDoNotDependOnThreads) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 500; ++i) datums.push_back(FloatDatum({std::sin(0.7f * i), 1e4f + 0.1f * i, -1.0f / (i + 1)}, 0));
  testing::WriteDatums(folder / "db", datums);
  const ImageStatistics one = StatisticsOf(folder / "db", 1), many = StatisticsOf(folder / "db", 5);
  EXPECT_EQ(one.mean, many.mean);
  EXPECT_EQ(one.channel_means, many.channel_means);
  EXPECT_EQ(one.channel_deviations, many.channel_deviations);
  EXPECT_NEAR(one.mean[1], 1e4 + 24.95, 0.01);
}

TEST(ImageStatistics, OfFloatsThatAreLargeAndCloseToEachOther) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 200; ++i) datums.push_back(FloatDatum({1e8f + 8.0f * static_cast<float>(i % 2), 1e8f + 16}, 0));
  testing::WriteDatums(folder / "db", datums);
  const ImageStatistics statistics = StatisticsOf(folder / "db");
  EXPECT_DOUBLE_EQ(statistics.channel_means[0], 1e8 + 10);
  EXPECT_NEAR(statistics.channel_deviations[0], std::sqrt((100.0 + 4 + 36 + 36) / 4), 1e-9);
}

TEST(ImageStatistics, TheMeanOfTheLargestFloatsIsOne) {
  TemporaryFolder folder;
  testing::WriteDatums(folder / "db", std::vector<Datum>(10, FloatDatum({3e38f, -3e38f}, 0)));
  EXPECT_EQ(StatisticsOf(folder / "db").mean, (std::vector<float>{3e38f, -3e38f}));
}

TEST(ImageStatistics, OfImagesOfDifferingSizes) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 70);
  ImageConversion encoded;
  encoded.encoded = true;
  Convert(folder / "set", encoded, folder / "encoded");
  Convert(folder / "set", {}, folder / "raw");
  const ImageStatistics a = StatisticsOf(folder / "encoded"), b = StatisticsOf(folder / "raw");
  EXPECT_FALSE(a.same_size);
  EXPECT_TRUE(a.mean.empty());
  EXPECT_EQ(a.channel_means, b.channel_means);
  EXPECT_EQ(a.channel_deviations, b.channel_deviations);
}

TEST(ImageStatistics, NameTheBrokenRecord) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 100; ++i) datums.push_back(testing::ImageDatum(3, 2, 2, i));
  datums[70].set_data("short");
  testing::WriteDatums(folder / "db", datums);
  ExpectThrows<UserError>([&] { StatisticsOf(folder / "db"); }, {"00000070", "5 bytes"});
  datums[70] = testing::ImageDatum(1, 2, 2, 0);
  testing::WriteDatums(folder / "db2", datums);
  ExpectThrows<UserError>([&] { StatisticsOf(folder / "db2"); }, {"00000070", "1 channel", "--gray"});
  datums = {datums.begin(), datums.begin() + 64};
  datums.push_back(testing::ImageDatum(1, 2, 2, 0));
  testing::WriteDatums(folder / "db3", datums);
  ExpectThrows<UserError>([&] { StatisticsOf(folder / "db3"); }, {"00000064", "1 channel"});
}

TEST(ImageStatistics, AreOfFiniteNumbers) {
  TemporaryFolder folder;
  testing::WriteDatums(folder / "db", {FloatDatum({1, 2}, 0), FloatDatum({1, NAN}, 0)});
  ExpectThrows<UserError>([&] { StatisticsOf(folder / "db"); }, {"00000001", "has nan as value 1 of its float_data"});
}

TEST(InspectDatabase, CountsWhatThereIs) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 3);
  ImageConversion encoded;
  encoded.encoded = true;
  Convert(folder / "set", encoded, folder / "db");
  SilentProgress progress;
  const DatabaseInfo info = InspectDatabase(*OpenRecordSource(folder / "db"), 2, &progress.line);
  EXPECT_EQ(info.records, 6);
  EXPECT_EQ(info.formats, (std::map<std::string, int64_t>{{"JPEG", 3}, {"PNG", 3}}));
  EXPECT_EQ(info.labels, (std::map<int, int64_t>{{0, 3}, {1, 3}}));
  EXPECT_EQ(info.shapes.at("3x21x30"), 1);
  EXPECT_EQ(info.shapes.size(), 6u);
  EXPECT_EQ(info.first_key, "00000000_cat/0.jpg");
  EXPECT_EQ(info.last_key, "00000005_dog/2.png");

  std::vector<Datum> datums(300, testing::ImageDatum(1, 2, 2, 5));
  datums[7] = FloatDatum({1, 2, 3}, 2);
  testing::WriteDatums(folder / "plain", datums);
  const DatabaseInfo plain = InspectDatabase(*OpenRecordSource(folder / "plain"), 2, &progress.line);
  const std::string text = DescribeDatabase("plain", plain, {"a", "b", "c"});
  for (const char* part : {"records: 300", "bytes (299), floats (1)", "1x2x2 (299), 1x1x3 (1)", "labels: 2 to 5, 2 d",
                           "without a record: 0, 1, 3, 4", "2          1  c\n", "5        299\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " not in\n" << text;
  }
}

TEST(VerifyDatabase, NamesBrokenRecords) {
  TemporaryFolder folder;
  std::vector<std::string> values(100, testing::ImageDatum(1, 2, 2, 5).SerializeAsString());
  Datum encoded;
  encoded.set_encoded(true);
  const std::string jpeg = testing::Bytes(EncodeJpeg(testing::Picture(1, 40, 40, 3)));
  encoded.set_data(jpeg);
  values[10] = encoded.SerializeAsString();
  testing::WriteRecords(folder / "good", values);
  SilentProgress progress;
  EXPECT_EQ(VerifyDatabase(*OpenRecordSource(folder / "good"), 2, &progress.line).count, 0);
  encoded.set_data(jpeg.substr(0, jpeg.size() / 2));
  values[20] = encoded.SerializeAsString();
  values[50] = "\xff\xff";
  testing::WriteRecords(folder / "bad", values);
  const auto source = OpenRecordSource(folder / "bad");
  const BrokenRecords broken = VerifyDatabase(*source, 3, &progress.line);
  EXPECT_EQ(broken.count, 2);
  ASSERT_EQ(broken.first.size(), 2u);
  EXPECT_NE(broken.first[0].find("00000020"), std::string::npos);
  EXPECT_NE(broken.first[1].find("00000050"), std::string::npos);
  EXPECT_NE(DescribeFields(*source, 20).find("broken: "), std::string::npos);
  EXPECT_NE(DescribeFields(*source, 10).find("decoded: 3x40x40"), std::string::npos);
  EXPECT_NE(DescribeFields(*source, 0).find("values: 5 12 19 26\n"), std::string::npos);
  EXPECT_EQ(FindKey(*source, "00000042"), 42u);
  ExpectThrows<UserError>([&] { FindKey(*source, "42"); }, {"00000099"});
}

// Pictures with the labels that follow.
void WriteLabelled(const std::string& database, const std::vector<std::vector<float>>& labels) {
  std::vector<Datum> datums;
  for (size_t i = 0; i < labels.size(); ++i) {
    datums.push_back(testing::ImageDatum(3, 4, 5, static_cast<int>(i)));
    datums.back().clear_label();
    datums.back().mutable_labels()->Add(labels[i].begin(), labels[i].end());
  }
  testing::WriteDatums(database, datums);
}

TEST(InspectDatabase, ShowsSeveralLabels) {
  TemporaryFolder folder;
  WriteLabelled(folder / "db", {{0.1f, 1}, {-3, 1}, {2, 0}});
  SilentProgress progress;
  const auto source = OpenRecordSource(folder / "db");
  DatabaseInfo info = InspectDatabase(*source, 2, &progress.line);
  EXPECT_TRUE(info.labels.empty());
  const std::string text = DescribeDatabase("db", info, {"height", "striped"});
  for (const char* part :
       {"\nlabels of a record: 2\n", "0  -3 to 2, mean -0.3  height\n", "1  0 to 1, mean 0.666667  striped\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " not in\n" << text;
  }
  EXPECT_EQ(SummarizeDatabase("db", info), "db: 3 records, stored as bytes, of 3x4x5, labels of a record: 2");
  const std::string fields = DescribeFields(*source, 0);
  EXPECT_NE(fields.find("\n  labels: 0.1 1\n"), std::string::npos) << fields;
  EXPECT_EQ(fields.find("label:"), std::string::npos) << fields;
  EXPECT_EQ(VerifyDatabase(*source, 2, &progress.line).count, 0);
  // Chunks are added up.
  WriteLabelled(folder / "large", std::vector<std::vector<float>>(600, {0.5, 2}));
  info = InspectDatabase(*OpenRecordSource(folder / "large"), 2, &progress.line);
  ASSERT_EQ(info.label_ranges.size(), 2u);
  EXPECT_EQ(info.label_ranges[1].count, 600);
  EXPECT_EQ(info.label_ranges[1].sum, 1200);
}

TEST(VerifyDatabase, NamesRecordsWithOtherLabels) {
  TemporaryFolder folder;
  WriteLabelled(folder / "db", {{1, 2}, {1, 2}, {1}, {}, {1, NAN}});
  SilentProgress progress;
  const auto source = OpenRecordSource(folder / "db");
  const BrokenRecords broken = VerifyDatabase(*source, 2, &progress.line);
  ASSERT_EQ(broken.count, 3);
  EXPECT_NE(broken.first[0].find("\"00000002\""), std::string::npos) << broken.first[0];
  EXPECT_NE(broken.first[0].find("has 1 label, but the first record has 2"), std::string::npos) << broken.first[0];
  EXPECT_NE(broken.first[1].find("has no labels"), std::string::npos) << broken.first[1];
  EXPECT_NE(broken.first[2].find("nan"), std::string::npos) << broken.first[2];
  const DatabaseInfo info = InspectDatabase(*source, 2, &progress.line);
  EXPECT_EQ(info.label_counts, (std::map<std::string, int64_t>{{"1", 1}, {"2", 3}}));
  ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*source, {folder / "out", {}}, &progress.line);
      },
      {"\"00000002\"", "has 1 label, but the first record has 2"});
}

TEST(ExportDatabase, ListsSeveralLabels) {
  TemporaryFolder folder;
  WriteLabelled(folder / "db", {{0.1f, 1e-7f, 1}, {1.0f / 3, -0.0f, 16777216}});
  SilentProgress progress;
  const auto source = OpenRecordSource(folder / "db");
  EXPECT_EQ(ExportDatabase(*source, {folder / "out", {}}, &progress.line), 2);
  EXPECT_EQ(testing::Listing(folder / "out"), "00000000.png 00000001.png list.txt");
  EXPECT_EQ(ReadFile(folder / "out/list.txt").substr(0, 27), "00000000.png 0.1 1e-07 1\n00");
  // And back.
  ConvertImages(ReadImageList(folder / "out/list.txt", folder / "out", 3), {}, {.database = folder / "again"},
                &progress.line);
  const auto again = OpenRecordSource(folder / "again");
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(testing::DatumOf(*again, i).SerializeAsString(), [&] {
      Datum datum = testing::DatumOf(*source, i);
      datum.set_encoded(false);  // as the converter says it
      return datum.SerializeAsString();
    }());
  }
  std::filesystem::remove(folder / "out/00000000.png");
  std::filesystem::remove(folder / "out/00000001.png");
  ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*source, {folder / "out", {}}, &progress.line);
      },
      {"list.txt", "exists already"});
  ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*source, {folder / "named", {"cat"}}, &progress.line);
      },
      {"--labels", "3 labels"});
}

TEST(ExportDatabase, GivesTheImagesBack) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 2);
  ImageConversion encoded;
  encoded.encoded = true;
  Convert(folder / "set", encoded, folder / "encoded");
  Convert(folder / "set", {}, folder / "raw");
  SilentProgress progress;
  const auto source = OpenRecordSource(folder / "encoded");
  EXPECT_EQ(ExportDatabase(*source, {folder / "a", {"cat"}}, &progress.line), 4);
  EXPECT_EQ(ReadFile(folder / "a/cat/00000001.jpg"), ReadFile(folder / "set/cat/1.jpg"));
  EXPECT_EQ(ReadFile(folder / "a/1/00000003.png"), ReadFile(folder / "set/dog/1.png"));
  EXPECT_EQ(ExportDatabase(*OpenRecordSource(folder / "raw"), {folder / "b", {"../x", "dog"}}, &progress.line), 4);
  EXPECT_EQ(ReadFile(folder / "b/dog/00000003.png"), ReadFile(folder / "set/dog/1.png"));
  EXPECT_EQ(testing::Listing(folder / "b"), "_.._x dog");
  ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*source, {folder / "a", {"cat"}}, &progress.line);
      },
      {"00000000.jpg", "exists already"});
  EXPECT_EQ(ExportDatabase(*source, {folder / "c", {}, 3}, &progress.line), 3);
  testing::ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*source, {folder / "d", {"a/b", "dog", "a_b"}}, &progress.line);
      },
      {"classes 0 and 2", "\"a_b\""});
  EXPECT_EQ(testing::Listing(folder / "c/1"), "00000002.png");
  // The dogs have no name, and their number is the name of the cats.
  testing::ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*source, {folder / "e", {"1"}}, &progress.line);
      },
      {"\"00000002_dog/0.png\"", "label 1, which --labels does not name", "class 0"});
  testing::WriteDatums(folder / "floats", {FloatDatum({1, 2}, 0)});
  ExpectThrows<UserError>(
      [&] {
        ExportDatabase(*OpenRecordSource(folder / "floats"), {folder / "d", {}}, &progress.line);
      },
      {"floats", "00000000"});
}

TEST(InspectDatabase, CountsObjects) {
  TemporaryFolder folder;
  AnnotatedDatum none, two;
  none.set_type(AnnotatedDatum::BBOX);
  *none.mutable_datum() = testing::ImageDatum(3, 4, 5, -1);
  two = none;
  AnnotationGroup* group = two.add_annotation_group();
  group->set_group_label(3);
  group->add_annotation();
  for (const bool difficult : {false, true}) {
    NormalizedBBox* box = (difficult ? group->add_annotation() : group->mutable_annotation(0))->mutable_bbox();
    box->set_xmax(0.5f);
    box->set_ymax(0.25f);
    box->set_difficult(difficult);
  }
  testing::WriteRecords(folder / "db", {none.SerializeAsString(), two.SerializeAsString()});
  const auto source = OpenRecordSource(folder / "db");
  SilentProgress progress;
  const DatabaseInfo info = InspectDatabase(*source, 1, &progress.line);
  EXPECT_EQ(info.annotated, 2);
  EXPECT_EQ(info.objects, 2);
  EXPECT_EQ(info.most_objects, 2);
  EXPECT_EQ(info.difficult, 1);
  EXPECT_EQ(info.labels, (std::map<int, int64_t>{{3, 2}}));
  EXPECT_EQ(info.shapes.at("3x4x5"), 2);
  EXPECT_EQ(VerifyDatabase(*source, 1, &progress.line).count, 0);
  const std::string fields = DescribeFields(*source, 1);
  EXPECT_NE(fields.find("object: label 3 instance 0 box 0 0 0.5 0.25 difficult"), std::string::npos) << fields;
  EXPECT_EQ(StatisticsOf(folder / "db").mean.size(), 60u);
  EXPECT_EQ(info.not_learnt, 0);
  EXPECT_EQ(DescribeDatabase("db", info, {}).find("cannot be learnt"), std::string::npos);
}

// As SSD's own program writes them, with no more than a warning.
TEST(VerifyDatabase, NamesBoxesThatAreNone) {
  TemporaryFolder folder;
  const float boxes[][4] = {{0.1f, 0.1f, 0.5f, 0.5f},
                            {0.5f, 0.1f, 0.5f, 0.5f},
                            {0.6f, 0.1f, 0.5f, 0.5f},
                            {1, 0.1f, 1.5f, 0.5f},
                            {0.1f, NAN, 0.5f, 0.5f}};
  std::vector<std::string> records;
  for (const auto& corners : boxes) {
    AnnotatedDatum record;
    record.set_type(AnnotatedDatum::BBOX);
    *record.mutable_datum() = testing::ImageDatum(3, 4, 5, -1);
    AnnotationGroup* group = record.add_annotation_group();
    group->set_group_label(2);
    NormalizedBBox* box = group->add_annotation()->mutable_bbox();
    box->set_xmin(corners[0]);
    box->set_ymin(corners[1]);
    box->set_xmax(corners[2]);
    box->set_ymax(corners[3]);
    records.push_back(record.SerializeAsString());
  }
  testing::WriteRecords(folder / "db", records);
  const auto source = OpenRecordSource(folder / "db");
  SilentProgress progress;
  const BrokenRecords broken = VerifyDatabase(*source, 1, &progress.line);
  EXPECT_EQ(broken.count, 4);
  ASSERT_EQ(broken.first.size(), 4u);
  const char* const wanted[] = {
      "has an object of label 2 whose box, 0.5 0.1 0.5 0.5 (xmin ymin xmax ymax), has no area", "has no area",
      "lies beside the image", "is not finite"};
  for (size_t i = 0; i < 4; ++i) EXPECT_NE(broken.first[i].find(wanted[i]), std::string::npos) << broken.first[i];
  const DatabaseInfo info = InspectDatabase(*source, 1, &progress.line);
  EXPECT_EQ(info.not_learnt, 4);
  EXPECT_NE(DescribeDatabase("db", info, {}).find("objects that cannot be learnt: 4, whose boxes have no area"),
            std::string::npos);
}

}  // namespace
}  // namespace crema
