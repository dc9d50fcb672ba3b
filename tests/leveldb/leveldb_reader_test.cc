// Reading LevelDB databases: OpenLevelDb and what libcrema_leveldb does.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "base/leveldb.h"
#include "base/random.h"
#include "data/data_testing.h"
#include "leveldb/leveldb_writer.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

using testing::ExpectThrows;
using testing::KeyOf;
using testing::KeyValue;
using testing::LevelDbSettings;
using testing::ReadFile;
using testing::WriteFile;
using testing::WriteLevelDb;
using Records = std::map<std::string, std::string>;

constexpr size_t kSmallBuffer = 64 << 10;

Records ReadAll(const std::string& folder) {
  const std::unique_ptr<LevelDbReader> reader = OpenLevelDb(folder);
  Records records;
  std::string last;
  while (reader->Next()) {
    EXPECT_TRUE(records.empty() || last < reader->key()) << last << " before " << reader->key();
    last = reader->key();
    records.emplace(last, reader->value());
  }
  return records;
}

// `count` records of `bytes` that nothing compresses, in an order that is not the keys'.
std::vector<KeyValue> MixedRecords(int count, size_t bytes) {
  std::vector<KeyValue> records;
  for (int i = 0; i < count; ++i) {
    const int number = i * 7 % count;  // count is no multiple of 7
    const RandomStream random(static_cast<uint64_t>(number), 0);
    std::string value(bytes, '\0');
    for (size_t k = 0; k < bytes; ++k) value[k] = static_cast<char>(random.Below(k, 256));
    records.emplace_back(KeyOf(number), value);
  }
  return records;
}

std::vector<std::string> FilesOf(const std::string& folder, const std::string& ending) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) files.push_back(entry.path());
  }
  return files;
}

// The only one: where a database is closed while it compacts, others may be left.
std::string OnlyFileOf(const std::string& folder, const std::string& ending) {
  const std::vector<std::string> files = FilesOf(folder, ending);
  EXPECT_EQ(files.size(), 1u) << ending;
  return files.empty() ? "" : files[0];
}

// Everything that is in a folder, and when it was written.
std::string StateOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path()] =
        std::to_string(entry.last_write_time().time_since_epoch().count()) + " " + ReadFile(entry.path());
  }
  std::string state = std::to_string(fs::last_write_time(folder).time_since_epoch().count());
  for (const auto& [name, content] : files) state += "\n" + name + " " + content;
  return state;
}

class LevelDbReaderTest : public testing::LevelDbTest {
 protected:
  // Several tables and a log, and no file that does not belong to the database.
  Records WriteTablesAndLog() const {
    const std::vector<KeyValue> records = MixedRecords(kInTables + kInLog, 800);
    WriteLevelDb(path_, {records.begin(), records.begin() + kInTables},
                 {.write_buffer = kSmallBuffer, .snappy = false, .compact = true});
    WriteLevelDb(path_, {records.begin() + kInTables, records.end()});
    EXPECT_GE(FilesOf(path_, ".ldb").size(), 2u);
    return {records.begin(), records.end()};
  }

  static constexpr int kInTables = 1500, kInLog = 100;
  const std::string path_ = folder_ / "db";
};

TEST_F(LevelDbReaderTest, ManyTablesAndALogAreOneOrder) {
  std::vector<KeyValue> records = MixedRecords(1000, 800);
  for (int i = 0; i < 1000; i += 9) records.emplace_back(KeyOf(i), "new " + std::to_string(i));
  for (int i = 0; i < 1000; i += 10) records.emplace_back(KeyOf(i), "");
  Records expected;
  for (const auto& [key, value] : records) {
    expected[key] = value;
    if (value.empty()) expected.erase(key);
  }
  WriteLevelDb(path_, records, {.write_buffer = kSmallBuffer});
  EXPECT_GE(FilesOf(path_, ".ldb").size(), 3u);
  uint64_t bytes = 0;
  for (const std::string& log : FilesOf(path_, ".log")) bytes += fs::file_size(log);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(ReadAll(path_), expected);
  // Files as versions before 1.14 name them.
  for (const std::string& table : FilesOf(path_, ".ldb")) fs::rename(table, fs::path(table).replace_extension(".sst"));
  EXPECT_EQ(ReadAll(path_), expected);
}

TEST_F(LevelDbReaderTest, ALogAloneIsRead) {
  const std::vector<KeyValue> records = MixedRecords(500, 784);
  WriteLevelDb(path_, records);
  EXPECT_TRUE(FilesOf(path_, ".ldb").empty());
  EXPECT_EQ(ReadAll(path_), Records(records.begin(), records.end()));
  // Caffe lets it grow to 256 MiB, so that several tables become of it in memory.
  std::vector<KeyValue> large;
  for (int i = 0; i < 90; ++i) large.emplace_back(KeyOf(i * 7 % 90), std::string(1 << 20, static_cast<char>('0' + i)));
  WriteLevelDb(folder_ / "large", large, {.write_buffer = 256 << 20});
  EXPECT_TRUE(FilesOf(folder_ / "large", ".ldb").empty());
  EXPECT_EQ(ReadAll(folder_ / "large"), Records(large.begin(), large.end()));
}

TEST_F(LevelDbReaderTest, SnappyBlocksAreRead) {
  std::vector<KeyValue> records;
  for (int i = 0; i < 500; ++i) records.emplace_back(KeyOf(i), std::string(1000, static_cast<char>(i)));
  WriteLevelDb(path_, records, {.compact = true});
  EXPECT_LT(fs::file_size(OnlyFileOf(path_, ".ldb")), 250000u);
  EXPECT_EQ(ReadAll(path_), Records(records.begin(), records.end()));
}

TEST_F(LevelDbReaderTest, KeysMayBeAnything) {
  const Records records = {{std::string("\0", 1), "a"}, {std::string("\0b\xff", 3), "b"}, {"\xff\xff", "c"}};
  WriteLevelDb(path_, {records.begin(), records.end()});
  EXPECT_EQ(ReadAll(path_), records);
}

// A database that LevelDB would compact when it is opened, since its tables overlap.
TEST_F(LevelDbReaderTest, NothingIsChanged) {
  WriteLevelDb(path_, MixedRecords(2000, 800), {.write_buffer = kSmallBuffer});
  const std::string before = StateOf(path_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ReadAll(path_).size(), 2000u);
  OpenLevelDb(path_)->Next();  // and left
  EXPECT_EQ(StateOf(path_), before);
}

TEST_F(LevelDbReaderTest, FoldersThatCannotBeWrittenAreRead) {
  const size_t count = WriteTablesAndLog().size();
  for (const auto& entry : fs::directory_iterator(path_)) fs::permissions(entry, fs::perms(0444));
  fs::permissions(path_, fs::perms(0555));
  EXPECT_EQ(testing::InUnprivilegedChild([&] { return ReadAll(path_).size() == count ? 0 : 1; }), 0);
  fs::permissions(path_ + "/LOCK", fs::perms(0));
  EXPECT_EQ(testing::InUnprivilegedChild([&] { return ReadAll(path_).size() == count ? 0 : 1; }), 0);
  fs::permissions(OnlyFileOf(path_, ".log"), fs::perms(0));
  EXPECT_EQ(testing::InUnprivilegedChild([&] {
              ExpectThrows<EnvironmentError>([&] { OpenLevelDb(path_); }, {path_, ".log", "Permission denied"});
              return HasFailure() ? 1 : 0;
            }),
            0);
  fs::permissions(path_, fs::perms(0755));
}

TEST_F(LevelDbReaderTest, OthersDoNotWriteMeanwhile) {
  WriteLevelDb(path_, MixedRecords(10, 100));
  auto held = testing::HoldLevelDb(path_);
  // Locks are between processes.
  EXPECT_EQ(testing::InUnprivilegedChild([&] {
              ExpectThrows<EnvironmentError>([&] { OpenLevelDb(path_); }, {path_, "another program has it open"});
              return HasFailure() ? 1 : 0;
            }),
            0);
  held.reset();
  auto reader = OpenLevelDb(path_);
  fs::permissions(path_ + "/LOCK", fs::perms(0666));
  EXPECT_EQ(testing::InUnprivilegedChild([&] {
              EXPECT_EQ(ReadAll(path_).size(), 10u);
              EXPECT_ANY_THROW(testing::HoldLevelDb(path_));
              return HasFailure() ? 1 : 0;
            }),
            0);
}

TEST_F(LevelDbReaderTest, ADamagedBlockEndsItWithTheRecordReached) {
  WriteLevelDb(path_, MixedRecords(1000, 800), {.snappy = false, .compact = true});
  const std::string table = OnlyFileOf(path_, ".ldb");
  std::string content = ReadFile(table);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  WriteFile(table, content);
  const std::unique_ptr<LevelDbReader> reader = OpenLevelDb(path_);
  int records = 0;
  std::string message;
  try {
    while (reader->Next()) ++records;
  } catch (const UserError& error) {
    message = error.what();
  }
  EXPECT_NEAR(records, 500, 10);
  for (const std::string& part :
       {path_, "is damaged behind record " + std::to_string(records) + ", \"" + KeyOf(records - 1) + "\": ",
        std::string("checksum mismatch"), std::string("copy it again"), std::string("plyvel.repair_db")}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " not in " << message;
  }
}

// Whatever bit is wrong: an error, or all records.
TEST_F(LevelDbReaderTest, NoBitIsWrongUnnoticed) {
  const Records expected = WriteTablesAndLog();
  int refused = 0, accepted = 0;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string file = entry.path(), whole = ReadFile(file);
    if (file.find("/LOG") != file.npos) continue;  // text for people
    for (size_t at = 0; at < whole.size(); at += whole.size() / 60 + 1) {
      std::string bent = whole;
      bent[at] = static_cast<char>(bent[at] ^ (1 << at % 8));
      WriteFile(file, bent);
      try {
        EXPECT_EQ(ReadAll(path_), expected) << file << " at " << at;
        ++accepted;
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
        ++refused;
      }
    }
    WriteFile(file, whole);
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(accepted, 10);  // what fills gaps
  EXPECT_EQ(ReadAll(path_), expected);
}

TEST_F(LevelDbReaderTest, FilesThatAreCutShortAreNoticed) {
  WriteTablesAndLog();
  int tried = 0;
  for (const char* ending : {".ldb", ".log"}) {
    const std::string file = FilesOf(path_, ending).at(0), whole = ReadFile(file);
    for (const size_t bytes : {whole.size() - 1, whole.size() - 100, whole.size() / 2 + 100, size_t{10}}) {
      SCOPED_TRACE(file + " of " + std::to_string(bytes) + " bytes");
      WriteFile(file, whole.substr(0, bytes));
      ExpectThrows<UserError>([&] { ReadAll(path_); }, {path_, "damaged"});
      ++tried;
    }
    WriteFile(file, whole);
  }
  EXPECT_EQ(tried, 8);
  const std::string manifest = path_ + "/" + ReadFile(path_ + "/CURRENT").substr(0, 15), whole = ReadFile(manifest);
  WriteFile(manifest, whole.substr(0, whole.size() - 1));
  ExpectThrows<UserError>([&] { ReadAll(path_); }, {path_, "MANIFEST-", "ends within a record"});
}

TEST_F(LevelDbReaderTest, ZerosAreFreeAtTheEndOfALogOnly) {
  constexpr size_t kBlock = 32768, kAround = 32;  // with these bytes around its value each record fills a block
  WriteLevelDb(path_, MixedRecords(5, kBlock - kAround));
  const std::string log = OnlyFileOf(path_, ".log"), whole = ReadFile(log);
  ASSERT_EQ(whole.size(), 5 * kBlock);
  WriteFile(log, whole + std::string(100000, '\0'));
  EXPECT_EQ(ReadAll(path_).size(), 5u);
  std::string gap = whole;
  gap.replace(2 * kBlock, kBlock, kBlock, '\0');
  WriteFile(log, gap);
  ExpectThrows<UserError>([&] { ReadAll(path_); }, {path_, "damaged"});
}

TEST_F(LevelDbReaderTest, MissingFilesAreNamed) {
  const Records records = WriteTablesAndLog();
  const auto without = [&](const std::string& file, const std::vector<std::string>& parts) {
    SCOPED_TRACE(file);
    fs::rename(file, folder_ / "aside");
    ExpectThrows<UserError>([&] { OpenLevelDb(path_); }, parts);
    fs::rename(folder_ / "aside", file);
  };
  without(path_ + "/CURRENT", {path_, "holds no file CURRENT", "copy it again"});
  const std::string manifest = ReadFile(path_ + "/CURRENT").substr(0, 15);
  without(path_ + "/" + manifest, {path_, manifest + ", which CURRENT names, is missing"});
  without(OnlyFileOf(path_, ".log"), {path_, "its log, number ", "is missing"});
  without(FilesOf(path_, ".ldb").at(0), {path_, "missing files", ".ldb"});
  EXPECT_EQ(ReadAll(path_), records);
}

TEST_F(LevelDbReaderTest, TheRemedyHelps) {
  const size_t count = WriteTablesAndLog().size();
  const std::string log = OnlyFileOf(path_, ".log");
  fs::resize_file(log, fs::file_size(log) - 10);
  EXPECT_THROW(ReadAll(path_), UserError);
  testing::RepairLevelDb(path_);
  EXPECT_EQ(ReadAll(path_).size(), count - 1);
  WriteFile(path_ + "/CURRENT", "nonsense");
  EXPECT_THROW(ReadAll(path_), UserError);
  testing::RepairLevelDb(path_);
  EXPECT_EQ(ReadAll(path_).size(), count - 1);
}

TEST_F(LevelDbReaderTest, WhatIsNoDatabaseIsAUserError) {
  ExpectThrows<UserError>([&] { OpenLevelDb(path_); }, {path_, "does not exist"});
  WriteFile(folder_ / "file", "x");
  ExpectThrows<UserError>([&] { OpenLevelDb(folder_ / "file"); }, {"is a file", "folder of a LevelDB"});
  ExpectThrows<UserError>([&] { OpenLevelDb(folder_.path()); }, {"holds no file CURRENT, so it is no LevelDB"});
  testing::WriteLevelDbInReverse(path_);
  ExpectThrows<UserError>([&] { OpenLevelDb(path_); }, {path_, "of another kind than Caffe's", "reverse"});
}

// In processes of their own: this one has loaded the library.
TEST(LevelDbLibrary, WhatIsMissingIsSaid) {
  TemporaryFolder folder;
  WriteFile(folder / "CURRENT", "MANIFEST-000001\n");
  WriteFile(folder / "text.so", "no library");
  const auto expect = [&](const std::string& library, const std::vector<std::string>& parts) {
    SCOPED_TRACE(library);
    EXPECT_EXIT(
        {
          setenv("CREMA_LEVELDB_LIBRARY", library.c_str(), 1);
          ExpectThrows<EnvironmentError>([&] { OpenLevelDb(folder.path()); }, parts);
          // And again: a failure is not remembered.
          ExpectThrows<EnvironmentError>([&] { OpenLevelDb(folder.path()); }, parts);
          std::exit(::testing::Test::HasFailure() ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  expect(folder / "absent.so",
         {folder.path(), "built without LevelDB", folder / "absent.so", "libleveldb-dev", "configure crema again"});
  expect(folder / "text.so", {folder.path(), "does not load", folder / "text.so"});
  expect("libz.so.1", {folder.path(), "another version of crema"});
}

}  // namespace
}  // namespace crema
