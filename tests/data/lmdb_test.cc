#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "data/data_testing.h"
#include "data/databases/lmdb_writer.h"
#include "data/databases/record_source.h"
#include "data/lmdb_testing.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::KeyOf;
using testing::Text;
using testing::ValueOf;

TEST(Lmdb, GivesBackWhatWasWritten) {
  TemporaryFolder folder;
  constexpr int kRecords = 25000;  // more than two transactions
  {
    LmdbWriter writer(folder / "db", LmdbWriter::Existing::kRefuse);
    for (int i = 0; i < kRecords; ++i) writer.Put(KeyOf(i), ValueOf(i));
    EXPECT_FALSE(RecordSourceExists(folder / "db"));
    writer.Commit();
  }
  EXPECT_EQ(testing::Listing(folder.path()), "db");
  EXPECT_EQ(testing::Listing(folder / "db"), "data.mdb");
  const auto source = OpenRecordSource(folder / "db");
  ASSERT_EQ(source->count(), static_cast<uint64_t>(kRecords));
  for (int i = 0; i < kRecords; ++i) ASSERT_EQ(Text(source->Read(i)), ValueOf(i)) << i;
  for (const int i : {0, 1, 24999}) EXPECT_EQ(source->Key(i), KeyOf(i));
  EXPECT_EQ(DescribeRecord(*source, 42), "record \"00000042\" of " + folder / "db");
}

TEST(Lmdb, KeysInAnyOrderAreSorted) {
  TemporaryFolder folder;
  LmdbWriter writer(folder / "db", LmdbWriter::Existing::kRefuse);
  for (const char* key : {"m", "z", "a", "zz", "b"}) writer.Put(key, std::string("value of ") + key);
  ExpectThrows<UserError>([&] { writer.Put("b", "again"); }, {"\"b\"", "twice"});
  ExpectThrows<UserError>([&] { writer.Put("", "x"); }, {"1 to 511"});
  ExpectThrows<UserError>([&] { writer.Put(std::string(512, 'k'), "x"); }, {"1 to 511"});
  writer.Commit();
  const auto source = OpenRecordSource(folder / "db");
  std::string keys;
  for (uint64_t i = 0; i < source->count(); ++i) {
    keys += source->Key(i) + " ";
    EXPECT_EQ(Text(source->Read(i)), "value of " + source->Key(i));
  }
  EXPECT_EQ(keys, "a b m z zz ");
}

TEST(Lmdb, TheMapGrowsBeyondItsFirstSize) {
  TemporaryFolder folder;
  const std::string value(size_t{20} << 20, 'v');  // each larger than a transaction
  {
    LmdbWriter writer(folder / "db", LmdbWriter::Existing::kRefuse);
    for (int i = 0; i < 9; ++i) writer.Put(KeyOf(i), value);
    writer.Commit();
  }
  const auto source = OpenRecordSource(folder / "db");
  EXPECT_EQ(source->count(), 9u);
  EXPECT_EQ(source->Read(8).size(), value.size());
  EXPECT_EQ(source->Read(8)[value.size() - 1], std::byte{'v'});
}

TEST(Lmdb, ManyThreadsRead) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 500, 1, 8, 8);
  const auto source = OpenRecordSource(folder / "db");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const int record = (i * 7 + t * 100) % 500;
        if (Text(source->Read(record)) != testing::ImageDatum(1, 8, 8, record).SerializeAsString()) ++wrong;
        if (i % 100 == 0 && source->Key(record) != KeyOf(record)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// As by `cp` over a database that is in use.
TEST(Lmdb, PagesLostWhileItIsReadAreAnError) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 500, 1, 32, 32);
  const auto source = OpenRecordSource(folder / "db");
  EXPECT_FALSE(source->Read(499).empty());
  const std::string file = folder / "db/data.mdb";
  std::filesystem::resize_file(file, 8192);
  for (int times = 0; times < 2; ++times) {
    ExpectThrows<EnvironmentError>([&] { source->Read(300); },
                                   {"db\" lost pages of data.mdb while it was read, at record number 300 or before",
                                    "not over a file that is in use"});
  }
  testing::WriteImages(folder / "other", 5, 1, 32, 32);
  EXPECT_EQ(Text(OpenRecordSource(folder / "other")->Read(4)), testing::ImageDatum(1, 32, 32, 4).SerializeAsString());
}

TEST(Lmdb, OpenedTwiceInOneProcess) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 2, 2);
  const auto first = OpenRecordSource(folder / "db");
  auto second = OpenRecordSource(folder.path() + "/./db");
  EXPECT_EQ(first->Read(3).data(), second->Read(3).data());  // one map
  second.reset();
  EXPECT_EQ(Text(first->Read(9)), testing::ImageDatum(1, 2, 2, 9).SerializeAsString());
}

TEST(Lmdb, WhatIsNoDatabaseIsAUserError) {
  TemporaryFolder folder;
  const auto open = [&](const std::string& name) { return [path = folder / name] { OpenRecordSource(path); }; };
  ExpectThrows<UserError>(open("absent"), {"absent", "does not exist", "convert_mnist_data"});
  EXPECT_FALSE(RecordSourceExists(folder / "absent"));
  ExpectThrows<UserError>([] { OpenRecordSource(""); }, {"empty"});

  testing::WriteFile(folder / "file", "x");
  ExpectThrows<UserError>(open("file"), {"is a file"});
  std::filesystem::create_directory(folder / "bare");
  ExpectThrows<UserError>(open("bare"), {"holds no data.mdb"});
  EXPECT_EQ(testing::Listing(folder / "bare"), "");  // and nothing is made

  std::filesystem::create_directory(folder / "level");
  testing::WriteFile(folder / "level/CURRENT", "MANIFEST-000001\n");
  ExpectThrows<UserError>(open("level"),
                          {"LevelDB", "db_tool convert \"" + folder / "level" + "\" \"" + folder / "level_lmdb" + "\"",
                           "source: \"" + folder / "level_lmdb" + "\" backend: LMDB"});
  ExpectThrows<UserError>(open("level/"), {"level/\" \"" + folder / "level_lmdb" + "\""});
  std::filesystem::remove(folder / "level/CURRENT");
  testing::WriteFile(folder / "level/MANIFEST-000001", "");
  ExpectThrows<UserError>(open("level"), {"LevelDB"});
  std::filesystem::rename(folder / "level", folder / "train_leveldb");
  ExpectThrows<UserError>(open("train_leveldb"), {"train_leveldb\" \"" + folder / "train_lmdb" + "\""});

  std::filesystem::create_directory(folder / "garbage");
  testing::WriteFile(folder / "garbage/data.mdb", std::string(20000, 'x'));
  ExpectThrows<UserError>(open("garbage"), {"not an LMDB"});
  // LMDB takes a file without a byte for a new database.
  testing::WriteFile(folder / "garbage/data.mdb", "");
  EXPECT_THROW(OpenRecordSource(folder / "garbage"), std::runtime_error);

  testing::WriteRecords(folder / "db", {"value"});
  ExpectThrows<UserError>(open("db/data.mdb"), {"is a file", "name the folder"});
}

TEST(Lmdb, APipeIsNotWaitedFor) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "data.mdb").c_str(), 0600), 0);
  ExpectThrows<UserError>([&] { OpenRecordSource(folder.path()); }, {"data.mdb is no regular file"});
}

TEST(Lmdb, AnEmptyDatabaseIsAUserError) {
  TemporaryFolder folder;
  LmdbWriter(folder / "db", LmdbWriter::Existing::kRefuse).Commit();
  ExpectThrows<UserError>([&] { OpenRecordSource(folder / "db"); }, {"is empty"});
}

TEST(Lmdb, AFileCutShortIsAUserErrorAtEveryLength) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 300, 1, 28, 28);
  const std::string whole = testing::ReadFile(folder / "db/data.mdb");
  std::filesystem::create_directory(folder / "cut");
  for (size_t bytes = 0; bytes < whole.size(); bytes += bytes < 10000 ? 500 : 20000) {
    testing::WriteFile(folder / "cut/data.mdb", whole.substr(0, bytes));
    EXPECT_THROW(OpenRecordSource(folder / "cut"), std::runtime_error) << bytes;
  }
  testing::WriteFile(folder / "cut/data.mdb", whole.substr(0, whole.size() - 1));
  ExpectThrows<UserError>([&] { OpenRecordSource(folder / "cut"); }, {"cut short"});
}

TEST(Lmdb, ReadsWithoutLocksWhereTheLockFileCannotBeUsed) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 4, 4);
  std::filesystem::create_directory(folder / "db/lock.mdb");  // nobody, root included, can open it as a file
  ::testing::internal::CaptureStderr();
  const auto source = OpenRecordSource(folder / "db");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("without LMDB's locks"), std::string::npos) << log;
  EXPECT_EQ(Text(source->Read(9)), testing::ImageDatum(1, 4, 4, 9).SerializeAsString());
}

// Whoever reads it first makes the file of its locks.
TEST(Lmdb, LeavesLocksThatOthersCanUse) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 4, 4);
  std::filesystem::remove(folder / "db/lock.mdb");
  const mode_t before = umask(022);
  OpenRecordSource(folder / "db");
  umask(before);
  struct stat locks;
  ASSERT_EQ(stat((folder / "db/lock.mdb").c_str(), &locks), 0);
  EXPECT_EQ(locks.st_mode & 0777, 0644u);
}

TEST(Lmdb, ReadsAFolderThatMayNotBeWritten) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 4, 4);
  chmod((folder / "db/data.mdb").c_str(), 0444);
  chmod((folder / "db").c_str(), 0555);
  const int status = testing::InUnprivilegedChild([&] {
    if (access((folder / "db").c_str(), W_OK) == 0) return 1;
    return OpenRecordSource(folder / "db")->Read(9).size() == testing::ImageDatum(1, 4, 4, 9).ByteSizeLong() ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(testing::Listing(folder / "db"), "data.mdb");
  chmod((folder / "db").c_str(), 0755);
}

TEST(Lmdb, WhatMayNotBeReadIsAnEnvironmentError) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 4, 4);
  const auto refused = [&] {
    try {
      OpenRecordSource(folder / "db");
      return 1;
    } catch (const EnvironmentError& error) {
      return std::strstr(error.what(), "Permission denied") ? 0 : 2;
    } catch (const UserError&) {
      return 3;
    }
  };
  chmod((folder / "db/data.mdb").c_str(), 0);
  EXPECT_EQ(testing::InUnprivilegedChild(refused), 0);
  chmod((folder / "db/data.mdb").c_str(), 0644);
  chmod((folder / "db").c_str(), 0);
  EXPECT_EQ(testing::InUnprivilegedChild(refused), 0);
  chmod((folder / "db").c_str(), 0755);
}

}  // namespace
}  // namespace crema
