// A database of records that can be read in any order.
#ifndef CREMA_DATA_DATABASES_RECORD_SOURCE_H_
#define CREMA_DATA_DATABASES_RECORD_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace crema {

// Records are numbered from 0 in the order of their keys. Const methods may be called by several threads at once.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  // Number of records, at least 1.
  virtual uint64_t count() const = 0;
  // The bytes of record i < count(); valid as long as the source.
  virtual std::span<const std::byte> Read(uint64_t i) const = 0;
  // The same, for who looks at a few of its bytes: the disk need not be read for the others. Nothing tells of those
  // that were lost meanwhile, which are 0.
  virtual std::span<const std::byte> Peek(uint64_t i) const { return Read(i); }
  // Bytes that all records take on the disk.
  virtual uint64_t bytes() const = 0;
  // From now on the disk is read by ReadAhead only, where that asked in time: what the system would read in addition,
  // on its own guess, is left away. For all who read this database in this process.
  virtual void ExpectReadAhead() const = 0;
  // Asks for records first to first + count - 1, which lie below count(), to be read from the disk, without waiting for
  // them: Read then need not.
  virtual void ReadAhead(uint64_t first, uint64_t count) const = 0;
  // The key of record i with unprintable bytes escaped. For messages: may take time linear in i.
  virtual std::string Key(uint64_t i) const = 0;
  // Calls visit(i, Key(i)) in order, until it returns false; takes one pass over the keys.
  virtual void VisitKeys(const std::function<bool(uint64_t i, const std::string& key)>& visit) const = 0;
  // What the user called it.
  virtual const std::string& path() const = 0;
};

// Opens the database in the folder `path`. Throws UserError that names the remedy where it is absent, empty, cut short
// or of another format, EnvironmentError where it may not be read.
std::shared_ptr<const RecordSource> OpenRecordSource(const std::string& path);

// Whether `path` is the folder of an LMDB, or of a LevelDB, which OpenRecordSource names the remedy of.
bool IsDatabaseFolder(const std::string& path);

// Whether something exists at `path`, readable or not.
bool RecordSourceExists(const std::string& path);

// `record "00000042" of train_lmdb`.
std::string DescribeRecord(const RecordSource& source, uint64_t i);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_RECORD_SOURCE_H_
