#include "inference/feature_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/hdf5.h"
#include "crema/error.h"
#include "data/databases/datum.h"
#include "data/databases/record_source.h"
#include "errors.h"
#include "files.h"
#include "temporary_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

// Numbers that shorter texts would lose.
const std::vector<float> kNumbers = {0.1f,
                                     -0.0f,
                                     1.0f / 3,
                                     16777217.0f,
                                     std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::max(),
                                     -std::numeric_limits<float>::infinity(),
                                     std::nextafter(1.0f, 2.0f)};

class FeatureFile : public ::testing::Test {
 protected:
  // Two records of a 2x2x2 blob, of which the second one is not labelled.
  static void PutTwo(FeatureWriter& writer) {
    std::vector<float> second = kNumbers;
    for (float& number : second) number = -number;
    writer.Put("photos/a, \"b\".png", 3, {kNumbers.data()});
    writer.Put("c.png", -1, {second.data()});
  }

  std::unique_ptr<FeatureWriter> Open(const std::string& name, bool replace = false) const {
    return MakeFeatureWriter({folder_ / name, replace}, {{"pool", {2, 2, 2}}});
  }

  std::string ErrorOf(const std::string& name, const std::vector<FeatureBlob>& blobs, bool replace = false) const {
    return ThrownBy<UserError>([&] { MakeFeatureWriter({folder_ / name, replace}, blobs); });
  }

  size_t Files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  std::unique_ptr<Hdf5Writer> ProbeHdf5() const { return CreateHdf5(folder_ / "probe"); }

  const TemporaryFolder folder_;
};

TEST_F(FeatureFile, CsvReadsBackExactly) {
  const auto writer = Open("features.csv");
  PutTwo(*writer);
  EXPECT_FALSE(fs::exists(folder_ / "features.csv"));
  writer->Commit();
  std::ifstream file(folder_ / "features.csv");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "record,label,0,1,2,3,4,5,6,7");
  for (const auto& [begin, sign] :
       {std::pair<std::string, float>{"\"photos/a, \"\"b\"\".png\",3,", 1.f}, {"c.png,,", -1.f}}) {
    ASSERT_TRUE(std::getline(file, line));
    ASSERT_TRUE(line.starts_with(begin)) << line;
    std::istringstream fields(line.substr(begin.size()));
    for (const float number : kNumbers) {
      std::string field;
      ASSERT_TRUE(std::getline(fields, field, ','));
      const float read = std::strtof(field.c_str(), nullptr), wanted = sign * number;
      EXPECT_EQ(std::memcmp(&read, &wanted, sizeof read), 0) << field;
    }
    EXPECT_TRUE(fields.eof());
  }
  EXPECT_FALSE(std::getline(file, line));
  EXPECT_EQ(Files(), 1u);
}

TEST_F(FeatureFile, Hdf5HoldsBlobsLabelsAndNames) {
  try {
    ProbeHdf5();
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  // More than is buffered.
  constexpr int kRecords = 3000;
  {
    const auto writer = MakeFeatureWriter({folder_ / "f.h5"}, {{"deep/pool", {32, 5}}, {"one", {}}});
    std::vector<float> pool(160);
    for (int r = 0; r < kRecords; ++r) {
      for (size_t i = 0; i < pool.size(); ++i) pool[i] = static_cast<float>(r) + 0.001f * static_cast<float>(i);
      const float one = static_cast<float>(-r);
      writer->Put(std::to_string(r) + ".png", r == 7 ? -1 : r % 4, {pool.data(), &one});
    }
    writer->Commit();
  }
  const auto file = OpenHdf5(folder_ / "f.h5");
  ASSERT_EQ(file->Extents("deep/pool"), (std::vector<int64_t>{kRecords, 32, 5}));
  ASSERT_EQ(file->Extents("one"), (std::vector<int64_t>{kRecords}));
  ASSERT_EQ(file->Extents("label"), (std::vector<int64_t>{kRecords}));
  std::vector<float> pool(kRecords * 160), one(kRecords), label(kRecords);
  file->Read("deep/pool", pool.data());
  file->Read("one", one.data());
  file->Read("label", label.data());
  std::string names;
  for (int r = 0; r < kRecords; ++r) {
    for (int i = 0; i < 160; ++i) ASSERT_EQ(pool[r * 160 + i], static_cast<float>(r) + 0.001f * static_cast<float>(i));
    ASSERT_EQ(one[r], static_cast<float>(-r));
    ASSERT_EQ(label[r], static_cast<float>(r == 7 ? -1 : r % 4));
    names += std::to_string(r) + ".png\n";
  }
  EXPECT_EQ(file->ReadText("record"), names);
}

TEST_F(FeatureFile, Hdf5WithoutLabelsHasNone) {
  try {
    ProbeHdf5();
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  const float number = 2;
  const auto plain = MakeFeatureWriter({folder_ / "f.hdf5"}, {{"x", {1}}});
  plain->Put("a", -1, {&number});
  plain->Commit();
  EXPECT_EQ(OpenHdf5(folder_ / "f.hdf5")->List("/").datasets, (std::vector<std::string>{"record", "x"}));
  // A blob of that name stands for them, but not in place of those that the records have.
  const auto own = MakeFeatureWriter({folder_ / "own.h5"}, {{"label", {}}});
  own->Put("a", -1, {&number});
  EXPECT_THROW(own->Put("b", 5, {&number}), UserError);
  own->Commit();
  float label = 0;
  OpenHdf5(folder_ / "own.h5")->Read("label", &label);
  EXPECT_EQ(label, 2);
}

TEST_F(FeatureFile, LmdbHoldsDatums) {
  const auto writer = Open("f_lmdb");
  PutTwo(*writer);
  EXPECT_FALSE(fs::exists(folder_ / "f_lmdb"));
  writer->Commit();
  const auto records = OpenRecordSource(folder_ / "f_lmdb");
  ASSERT_EQ(records->count(), 2u);
  EXPECT_EQ(records->Key(1), "0000000001");
  for (const uint64_t i : {0, 1}) {
    DatumView datum;
    ASSERT_EQ(ParseDatum(records->Read(i), &datum), nullptr);
    EXPECT_EQ(CheckDatum(datum), "");
    EXPECT_EQ(datum.size, (ImageSize{2, 2, 2}));
    EXPECT_EQ(datum.label, i == 0 ? 3 : -1);
    ASSERT_EQ(datum.float_count, kNumbers.size());
    std::vector<float> values(datum.float_count);
    datum.CopyFloats(values.data());
    for (size_t k = 0; k < values.size(); ++k) EXPECT_EQ(values[k], i == 0 ? kNumbers[k] : -kNumbers[k]);
  }
}

TEST_F(FeatureFile, SeveralLabelsAreColumns) {
  const std::vector<float> labels = {0.5f, -3};
  const float number = 2;
  for (const std::string name : {"f.csv", "f_lmdb", "f.h5"}) {
    std::unique_ptr<FeatureWriter> writer;
    try {
      writer = MakeFeatureWriter({.path = folder_ / name, .labels = 2}, {{"x", {1}}});
    } catch (const EnvironmentError&) {
      continue;  // there is no HDF5 here
    }
    writer->Put("a", std::span(labels), {&number});
    writer->Put("b", std::span(labels), {&number});
    writer->Commit();
    if (name == "f.h5") {
      EXPECT_EQ(OpenHdf5(folder_ / name)->Extents("label"), (std::vector<int64_t>{2, 2}));
      std::vector<float> read(4);
      OpenHdf5(folder_ / name)->Read("label", read.data());
      EXPECT_EQ(read, (std::vector<float>{0.5f, -3, 0.5f, -3}));
    }
  }
  EXPECT_EQ(ReadFile(folder_ / "f.csv"), "record,label_0,label_1,0\na,0.5,-3,2\nb,0.5,-3,2\n");
  DatumView datum;
  const auto records = OpenRecordSource(folder_ / "f_lmdb");
  ASSERT_EQ(ParseDatum(records->Read(1), &datum), nullptr);
  std::vector<float> read(2);
  ASSERT_EQ(ReadDatumLabels(datum, 2, read.data()), "");
  EXPECT_EQ(read, labels);
}

TEST_F(FeatureFile, OfOneAxisIsWrittenAsChannels) {
  const auto writer = MakeFeatureWriter({folder_ / "f.lmdb/"}, {{"fc", {8}}});
  writer->Put("a", 1, {kNumbers.data()});
  writer->Commit();
  DatumView datum;
  ASSERT_EQ(ParseDatum(OpenRecordSource(folder_ / "f.lmdb")->Read(0), &datum), nullptr);
  EXPECT_EQ(datum.size, (ImageSize{8, 1, 1}));
}

TEST_F(FeatureFile, IsNotThereWithoutCommit) {
  for (const char* name : {"f.csv", "f_lmdb"}) PutTwo(*Open(name));
  EXPECT_EQ(Files(), 0u);
  try {
    PutTwo(*Open("f.h5"));
  } catch (const EnvironmentError&) {
    // There is no HDF5 here.
  }
  EXPECT_EQ(Files(), 0u);
}

TEST_F(FeatureFile, ReplacesOnlyWhenTold) {
  for (const std::string name : {"f.csv", "f_lmdb"}) {
    const auto first = Open(name);
    PutTwo(*first);
    first->Commit();
    const std::string error = ErrorOf(name, {{"pool", {8}}});
    EXPECT_NE(error.find(name + ": error: exists already; choose another name, or pass --force"), std::string::npos)
        << error;
    const auto second = Open(name, true);
    second->Put("only", 1, {kNumbers.data()});
    second->Commit();
  }
  EXPECT_EQ(OpenRecordSource(folder_ / "f_lmdb")->count(), 1u);
  std::ifstream file(folder_ / "f.csv");
  std::string heading, line, more;
  std::getline(file, heading);
  std::getline(file, line);
  EXPECT_TRUE(line.starts_with("only,1,0.1,-0,")) << line;
  EXPECT_FALSE(std::getline(file, more));
}

TEST_F(FeatureFile, SaysWhatItCannotHold) {
  EXPECT_NE(ErrorOf("f.txt", {{"a", {1}}}).find("f.txt: error: its ending does not say what to write; end it in .csv"),
            std::string::npos);
  for (const char* name : {"f.csv", "f_lmdb"}) {
    EXPECT_NE(
        ErrorOf(name, {{"a", {1}}, {"b", {1}}}).find("takes one blob, but 2 are to be written; write them to a .h5"),
        std::string::npos);
  }
  EXPECT_NE(ErrorOf("f_lmdb", {{"a", {1, 2, 3, 4}}}).find("\"a\" is 1x2x3x4 of each record"), std::string::npos);
  EXPECT_NE(ErrorOf("f.h5", {{"record", {1}}}).find("cannot hold the blob \"record\""), std::string::npos);
  EXPECT_NE(ErrorOf("f.h5", {{"a", {1}}, {"a/b", {1}}}).find("cannot hold the blob \"a/b\" beside the dataset \"a\""),
            std::string::npos);
  EXPECT_EQ(Files(), 0u);
  EXPECT_THROW(MakeFeatureWriter({folder_ / "absent/f.csv"}, {{"a", {1}}}), EnvironmentError);
}

}  // namespace
}  // namespace crema
