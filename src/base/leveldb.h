// Reading LevelDB databases, through libcrema_leveldb: a library of its own, loaded when the first one is opened, so
// that only those who have such databases need LevelDB.
#ifndef CREMA_BASE_LEVELDB_H_
#define CREMA_BASE_LEVELDB_H_

#include <memory>
#include <string>
#include <string_view>

namespace crema {

// An open database, whose records are read once, in the order of their keys. Used by one thread.
class LevelDbReader {
 public:
  virtual ~LevelDbReader() = default;

  // Goes to the next record, at first to the first one; false behind the last. All checksums are verified. Throws
  // UserError where the database is damaged, EnvironmentError where it cannot be read; both name its folder and how far
  // it was read.
  virtual bool Next() = 0;
  // Of the record that Next found; valid until it is called again.
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
};

// Opens the database without changing anything in its folder; other programs cannot change it as long as it is open.
// Throws UserError where `folder` is absent, no LevelDB, or damaged; EnvironmentError where it cannot be read, where
// another program has it open, or where this crema has no LevelDB. CREMA_LEVELDB_LIBRARY names another library than the
// libcrema_leveldb.so beside libcrema.
std::unique_ptr<LevelDbReader> OpenLevelDb(const std::string& folder);

// Whether the folder holds files as LevelDB writes them; false where it cannot be read.
bool LooksLikeLevelDb(const std::string& folder);

// What libcrema_leveldb exports under the name "crema_leveldb_library".
constexpr int kLevelDbInterface = 1;
struct LevelDbLibrary {
  int interface_version;
  std::unique_ptr<LevelDbReader> (*open)(const std::string& folder);
};

}  // namespace crema

#endif  // CREMA_BASE_LEVELDB_H_
