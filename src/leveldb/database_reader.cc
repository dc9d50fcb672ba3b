#include "leveldb/database_reader.h"

#include <fcntl.h>
#include <leveldb/db.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/printable.h"
#include "crema/error.h"
#include "leveldb/log_check.h"
#include "leveldb/source_environment.h"

namespace crema::level_db {

namespace {

constexpr char kRemedy[] =
    "; copy it again from where it is whole, or keep what can be read: Python's plyvel.repair_db(FOLDER) (Debian, "
    "Ubuntu: python3-plyvel) leaves out what is damaged; give it a copy, which it changes";

// Keeps programs away that would change the database. LevelDB's lock is one for writing, of a whole file; one for
// reading stands against it, and neither changes the file nor needs the right to. It is of the open file, so that
// several readers of one process do not take it from each other.
class SourceLock {
 public:
  explicit SourceLock(const std::string& folder) : descriptor_(open((folder + "/LOCK").c_str(), O_RDONLY | O_CLOEXEC)) {
    struct flock whole {};
    whole.l_type = F_RDLCK;
    whole.l_whence = SEEK_SET;
    // Without the file (in copies), or where the file system has no locks, there is nobody to be kept away.
    if (descriptor_ < 0 || fcntl(descriptor_, F_OFD_SETLK, &whole) == 0 || (errno != EACCES && errno != EAGAIN)) return;
    close(descriptor_);
    throw EnvironmentError("cannot read LevelDB \"" + folder +
                           "\": another program has it open; end that first, or read a copy");
  }
  ~SourceLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  SourceLock(const SourceLock&) = delete;
  SourceLock& operator=(const SourceLock&) = delete;

 private:
  int descriptor_;
};

class Database : public LevelDbReader {
 public:
  explicit Database(const std::string& folder) : folder_(folder), lock_(folder) {
    if (const std::string problem = ProblemOfLogs(folder); !problem.empty()) Damaged(problem);
    leveldb::Options options;
    options.env = &environment_;
    options.paranoid_checks = true;
    options.write_buffer_size = 32 << 20;  // how much of the log becomes one table
    options.compression = leveldb::kNoCompression;
    options.max_open_files = 100;
    leveldb::DB* database = nullptr;
    Check(leveldb::DB::Open(options, folder, &database));
    database_.reset(database);
    leveldb::ReadOptions reading;
    reading.verify_checksums = true;
    reading.fill_cache = false;
    iterator_.reset(database_->NewIterator(reading));
  }

  bool Next() override {
    if (records_ == 0) {
      iterator_->SeekToFirst();
    } else {
      last_key_.assign(key());
      iterator_->Next();
    }
    // LevelDB goes on behind a block that is damaged, and says so only here.
    Check(iterator_->status());
    if (!iterator_->Valid()) return false;
    ++records_;
    return true;
  }

  std::string_view key() const override { return View(iterator_->key()); }
  std::string_view value() const override { return View(iterator_->value()); }

 private:
  static std::string_view View(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

  std::string Reached() const {
    if (records_ == 0) return "";
    return " behind record " + std::to_string(records_) + ", \"" + Printable(last_key_) + "\"";
  }

  [[noreturn]] void Damaged(const std::string& what) const {
    throw UserError("LevelDB \"" + folder_ + "\" is damaged" + Reached() + ": " + what + kRemedy);
  }

  void Check(const leveldb::Status& status) const {
    if (status.ok()) return;
    if (status.IsIOError()) {
      throw EnvironmentError("cannot read LevelDB \"" + folder_ + "\"" + Reached() + ": " + status.ToString());
    }
    if (status.IsInvalidArgument()) {  // another order of keys
      throw UserError("\"" + folder_ + "\" is a LevelDB of another kind than Caffe's: " + status.ToString());
    }
    Damaged(status.ToString());
  }

  std::string folder_;
  SourceLock lock_;
  SourceEnvironment environment_;
  std::unique_ptr<leveldb::DB> database_;
  std::unique_ptr<leveldb::Iterator> iterator_;
  uint64_t records_ = 0;
  std::string last_key_;
};

}  // namespace

std::unique_ptr<LevelDbReader> OpenDatabase(const std::string& folder) { return std::make_unique<Database>(folder); }

}  // namespace crema::level_db
