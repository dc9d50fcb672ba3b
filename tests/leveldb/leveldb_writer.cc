#include "leveldb/leveldb_writer.h"

#include <stdexcept>

#ifdef CREMA_HAS_LEVELDB
#include <leveldb/c.h>
#include <leveldb/db.h>
#endif

namespace crema::testing {

#ifdef CREMA_HAS_LEVELDB

namespace {

void Check(const leveldb::Status& status) {
  if (!status.ok()) throw std::runtime_error("the test cannot write a LevelDB: " + status.ToString());
}

std::unique_ptr<leveldb::DB> Open(const std::string& path, const LevelDbSettings& settings) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.max_file_size = 1 << 20;
  options.write_buffer_size = settings.write_buffer;
  options.compression = settings.snappy ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  leveldb::DB* database = nullptr;
  Check(leveldb::DB::Open(options, path, &database));
  return std::unique_ptr<leveldb::DB>(database);
}

}  // namespace

bool HasLevelDb() { return true; }

void WriteLevelDb(const std::string& path, const std::vector<KeyValue>& records, const LevelDbSettings& settings) {
  const std::unique_ptr<leveldb::DB> database = Open(path, settings);
  for (const auto& [key, value] : records) {
    Check(value.empty() ? database->Delete({}, key) : database->Put({}, key, value));
  }
  if (settings.compact) database->CompactRange(nullptr, nullptr);
}

void WriteLevelDbInReverse(const std::string& path) {
  const auto compare = [](void*, const char* a, size_t a_bytes, const char* b, size_t b_bytes) {
    return std::string_view(b, b_bytes).compare(std::string_view(a, a_bytes));
  };
  leveldb_comparator_t* const comparator = leveldb_comparator_create(
      nullptr, [](void*) {}, compare, [](void*) -> const char* { return "reverse"; });
  leveldb_options_t* const options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_comparator(options, comparator);
  char* error = nullptr;
  leveldb_close(leveldb_open(options, path.c_str(), &error));
  leveldb_options_destroy(options);
  leveldb_comparator_destroy(comparator);
}

std::shared_ptr<void> HoldLevelDb(const std::string& path) { return Open(path, {}); }

void RepairLevelDb(const std::string& path) { Check(leveldb::RepairDB(path, {})); }

#else

namespace {

[[noreturn]] void Refuse() { throw std::runtime_error("built without LevelDB"); }

}  // namespace

bool HasLevelDb() { return false; }
void WriteLevelDb(const std::string&, const std::vector<KeyValue>&, const LevelDbSettings&) { Refuse(); }
void WriteLevelDbInReverse(const std::string&) { Refuse(); }
std::shared_ptr<void> HoldLevelDb(const std::string&) { Refuse(); }
void RepairLevelDb(const std::string&) { Refuse(); }

#endif

}  // namespace crema::testing
