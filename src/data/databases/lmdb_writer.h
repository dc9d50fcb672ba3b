// Writing LMDB databases that Caffe and crema read.
#ifndef CREMA_DATA_DATABASES_LMDB_WRITER_H_
#define CREMA_DATA_DATABASES_LMDB_WRITER_H_

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace crema {

// Digits of the keys of `count` records: as many as let them lie in the order of their numbers, and at least `least`.
int KeyDigits(uint64_t count, int least = 8);

// "00000042": the key of record `number`, or what it begins with.
std::string RecordKey(uint64_t number, int digits);

// Makes the folder `path` with a data.mdb, whole or not at all: records go to `<path>.tmp.<number>` in transactions of
// up to 10000 records or 16 MiB, and Commit renames it. Without Commit nothing appears under `path`. Used by one
// thread. Throws EnvironmentError where the disk is full or not writable.
class LmdbWriter {
 public:
  static constexpr size_t kMaxKeyBytes = 511;  // as LMDB is built

  enum class Existing { kRefuse, kReplace };

  // Throws UserError where something exists at `path` and is not to be replaced, or is no LMDB. What a link leads to is
  // replaced, not the link.
  LmdbWriter(std::string path, Existing existing);
  ~LmdbWriter();
  LmdbWriter(const LmdbWriter&) = delete;
  LmdbWriter& operator=(const LmdbWriter&) = delete;

  // Keys have 1 to 511 bytes; a key given twice is a UserError. Ascending keys are written fastest and densest.
  void Put(std::string_view key, std::string_view value);
  // Writes all to the disk, still under the temporary name; no Put may follow.
  void Flush();
  // Removes what Commit would replace.
  void RemoveReplaced();
  // Flushes where that was not done, and gives the database its name.
  void Commit();

  uint64_t records() const { return records_; }

 private:
  void Begin(size_t first_record_bytes);
  void CommitTransaction();
  void Close();
  // Throws UserError where more than a database would be replaced.
  void CheckReplaced() const;
  [[noreturn]] void Fail(const std::string& what, int status) const;

  std::string path_, temporary_, last_key_;
  Existing existing_;
  MDB_env* environment_ = nullptr;
  MDB_txn* transaction_ = nullptr;
  MDB_dbi database_ = 0;
  uint64_t records_ = 0;
  size_t map_bytes_ = 0;
  // Of the open transaction.
  uint64_t pending_records_ = 0;
  size_t pending_bytes_ = 0;
};

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_LMDB_WRITER_H_
