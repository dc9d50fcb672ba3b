// LevelDB databases for tests, written with LevelDB itself.
#ifndef CREMA_TESTS_LEVELDB_LEVELDB_WRITER_H_
#define CREMA_TESTS_LEVELDB_LEVELDB_WRITER_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "temporary_folder.h"

namespace crema::testing {

// False where this build has no LevelDB.
bool HasLevelDb();

struct LevelDbSettings {
  size_t write_buffer = 4 << 20;  // bytes that the log grows to before they become a table; at least 64 KiB
  bool snappy = true;
  bool compact = false;  // leave nothing in the log
};

using KeyValue = std::pair<std::string, std::string>;

// Puts the records in this order; an empty value removes the key.
void WriteLevelDb(const std::string& path, const std::vector<KeyValue>& records, const LevelDbSettings& settings = {});

// One whose keys have another order than that of their bytes.
void WriteLevelDbInReverse(const std::string& path);

// Open as long as what is returned lives.
std::shared_ptr<void> HoldLevelDb(const std::string& path);

// As Python's plyvel.repair_db.
void RepairLevelDb(const std::string& path);

// Skips, saying so, where this build has no LevelDB.
class LevelDbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasLevelDb()) GTEST_SKIP() << "built without LevelDB (libleveldb-dev)";
  }
  TemporaryFolder folder_;
};

}  // namespace crema::testing

#endif  // CREMA_TESTS_LEVELDB_LEVELDB_WRITER_H_
