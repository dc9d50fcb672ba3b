// What LevelDB sees in place of the file system.
#ifdef CREMA_HAS_LEVELDB

#include "leveldb/source_environment.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "data/data_testing.h"
#include "temporary_folder.h"

namespace crema::level_db {
namespace {

TEST(SourceEnvironment, WhatIsWrittenStaysInMemory) {
  TemporaryFolder folder;
  testing::WriteFile(folder / "here", "0123456789");
  SourceEnvironment environment;
  leveldb::WritableFile* file = nullptr;
  ASSERT_TRUE(environment.NewWritableFile(folder / "new", &file).ok());
  const std::unique_ptr<leveldb::WritableFile> writer(file);
  ASSERT_TRUE(writer->Append("abc").ok() && writer->Append("def").ok() && writer->Close().ok());
  leveldb::FileLock* lock = nullptr;
  ASSERT_TRUE(environment.LockFile(folder / "LOCK", &lock).ok());
  ASSERT_TRUE(environment.UnlockFile(lock).ok());
  EXPECT_TRUE(environment.CreateDir(folder / "deeper").ok());
  EXPECT_TRUE(environment.RemoveFile(folder / "here").ok());
  EXPECT_TRUE(environment.RenameFile(folder / "here", folder / "there").ok());
  EXPECT_FALSE(environment.NewAppendableFile(folder / "here", &file).ok());
  EXPECT_EQ(testing::Listing(folder.path()), "here");

  char scratch[16];
  leveldb::Slice part;
  for (const auto& [name, expected] : {std::pair("new", "cde"), std::pair("here", "234")}) {
    leveldb::RandomAccessFile* opened = nullptr;
    ASSERT_TRUE(environment.NewRandomAccessFile(folder / name, &opened).ok());
    const std::unique_ptr<leveldb::RandomAccessFile> reader(opened);
    ASSERT_TRUE(reader->Read(2, 3, &part, scratch).ok());
    EXPECT_EQ(part.ToString(), expected);
    EXPECT_EQ(reader->Read(8, 8, &part, scratch).IsCorruption(), name == std::string("here"));
  }
  leveldb::RandomAccessFile* absent = nullptr;
  EXPECT_TRUE(environment.NewRandomAccessFile(folder / "absent", &absent).IsNotFound());
}

TEST(SourceEnvironment, NobodyCompacts) {
  TemporaryFolder folder;
  SourceEnvironment environment;
  bool refused = false;
  std::thread([&] {
    leveldb::WritableFile* file = nullptr;
    refused = environment.NewWritableFile(folder / "new", &file).IsIOError() && !file;
  }).join();
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace crema::level_db

#endif
