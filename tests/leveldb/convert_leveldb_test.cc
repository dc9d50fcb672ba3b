// LevelDBs to LMDBs: ConvertLevelDb, and db_tool as a user runs it.
#include "data/convert/convert_leveldb.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/data_testing.h"
#include "data/source_driver.h"
#include "leveldb/leveldb_writer.h"
#include "tools/program.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

using testing::ExpectThrows;
using testing::KeyOf;
using testing::KeyValue;
using testing::Listing;
using testing::WriteLevelDb;
using testing_tools::Finished;
using testing_tools::RunProgram;

// Records of 1x28x28 with labels 0 to 9, in tables and a log.
std::vector<KeyValue> Images(int count) {
  std::vector<KeyValue> records;
  for (int i = 0; i < count; ++i) {
    Datum datum = testing::ImageDatum(1, 28, 28, i % 10);
    (*datum.mutable_data())[0] = static_cast<char>(i);
    records.emplace_back(KeyOf(i), datum.SerializeAsString());
  }
  return records;
}

class ConvertLevelDbTest : public testing::LevelDbTest {
 protected:
  void Write(const std::vector<KeyValue>& records) const { WriteLevelDb(old_, records, {.write_buffer = 64 << 10}); }

  const std::string old_ = folder_ / "train_leveldb", new_ = folder_ / "train_lmdb";
};

TEST_F(ConvertLevelDbTest, KeysAndValuesAreTheSame) {
  std::vector<KeyValue> records = Images(300);
  records[7].second = "\xff\xff no Datum";
  records.emplace_back(std::string("\x01\x00", 2), testing::ImageDatum(3, 2, 5, 77).SerializeAsString());
  Write(records);
  const DatabaseInfo info = ConvertLevelDb(old_, new_, false);
  std::sort(records.begin(), records.end());
  const auto source = OpenRecordSource(new_);
  ASSERT_EQ(source->count(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const std::span<const std::byte> value = source->Read(i);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(value.data()), value.size()), records[i].second) << i;
  }
  EXPECT_EQ(source->Key(0), "\\x01\\x00");
  EXPECT_EQ(source->Key(300), KeyOf(299));
  EXPECT_EQ(info.records, 301);
  EXPECT_EQ(info.foreign, 1);
  EXPECT_EQ(SummarizeDatabase("x", info),
            "x: 301 records, stored as bytes (300), unreadable (1), of 1x28x28 (299), 3x2x5 (1), unreadable (1), "
            "labels 0 to 77");
}

TEST_F(ConvertLevelDbTest, NothingIsLeftOfWhatFails) {
  const auto expect = [&](const std::vector<std::string>& parts) {
    ExpectThrows<UserError>([&] { ConvertLevelDb(old_, new_, false); }, parts);
    EXPECT_FALSE(fs::exists(new_));
    EXPECT_EQ(Listing(folder_.path()).find("lmdb"), std::string::npos);
  };
  Write({});
  expect({old_, "is empty"});
  std::vector<KeyValue> records = Images(300);
  records.emplace_back("9" + std::string(600, 'x'), "value");
  Write(records);
  expect({old_, "601 bytes", "9xxx", "have 1 to 511", "another key"});
  fs::remove_all(old_);
  Write(Images(2000));
  for (const auto& entry : fs::directory_iterator(old_)) {
    if (entry.path().extension() != ".ldb") continue;
    std::string content = testing::ReadFile(entry.path());
    content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
    testing::WriteFile(entry.path(), content);
  }
  expect({old_, "damaged behind record "});
  testing::WriteImages(folder_ / "already", 3, 1, 2, 2);
  ExpectThrows<UserError>([&] { ConvertLevelDb(folder_ / "already", new_, false); }, {"is an LMDB already"});
}

TEST_F(ConvertLevelDbTest, ADataLayerReadsWhatTheProgramMakes) {
  const std::vector<KeyValue> records = Images(500);
  Write(records);
  const auto layer = [](const std::string& source) {
    return "top: \"data\" top: \"label\" data_param { batch_size: 50 backend: LMDB source: \"" + source + "\" }";
  };
  const std::string command = "db_tool convert \"" + old_ + "\" \"" + new_ + "\"";
  ExpectThrows<UserError>([&] { testing::SourceDriver("Data", layer(old_)); },
                          {old_, "LevelDB", command, "source: \"" + new_ + "\" backend: LMDB"});

  const Finished done = RunProgram({"db_tool", "convert", old_, new_});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.Says(new_ + ": 500 records, stored as bytes, of 1x28x28, labels 0 to 9\n500 records, ")) << done.err;
  EXPECT_EQ(Listing(folder_.path()), "train_leveldb train_lmdb");
  testing::SourceDriver driver("Data", layer(new_));
  EXPECT_TRUE(driver.setup().warnings().empty());
  for (int i = 0; i < 500; ++i) {
    if (i % 50 == 0) driver.Forward();
    Datum datum;
    ASSERT_TRUE(datum.ParseFromString(records[static_cast<size_t>(i)].second));
    EXPECT_EQ(driver.value(1)[i % 50], static_cast<float>(datum.label()));
    for (int k = 0; k < 784; ++k) {
      ASSERT_EQ(driver.value(0)[i % 50 * 784 + k], static_cast<float>(static_cast<uint8_t>(datum.data()[k])));
    }
  }

  const Finished again = RunProgram({"db_tool", "convert", old_, new_});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(again.Says("exists already") && again.Says("--force")) << again.err;
  Write({{"foreign", "\xff\xff"}});
  const Finished forced = RunProgram({"db_tool", "convert", "--force", old_, new_});
  EXPECT_EQ(forced.exit_code, 0);
  EXPECT_TRUE(forced.Says(": 501 records") && forced.Says("warning: 1 of the records are no Datums")) << forced.err;
  EXPECT_EQ(OpenRecordSource(new_)->count(), 501u);
}

TEST_F(ConvertLevelDbTest, DamageIsToldByTheProgram) {
  Write(Images(500));
  fs::remove(old_ + "/CURRENT");
  const Finished done = RunProgram({"db_tool", "convert", old_, new_});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(done.Says(old_) && done.Says("holds no file CURRENT")) << done.err;
  EXPECT_EQ(Listing(folder_.path()), "train_leveldb");
}

}  // namespace
}  // namespace crema
