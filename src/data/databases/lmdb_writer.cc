#include "data/databases/lmdb_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/output_path.h"
#include "base/paths.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr uint64_t kTransactionRecords = 10000;
constexpr size_t kTransactionBytes = size_t{16} << 20;
constexpr size_t kFirstMapBytes = size_t{128} << 20;

// Removes a folder that holds nothing but an LMDB; returns 0 or an errno.
int RemoveDatabase(const std::string& folder) {
  for (const char* file : {"/data.mdb", "/lock.mdb"}) {
    if (unlink((folder + file).c_str()) != 0 && errno != ENOENT) return errno;
  }
  return rmdir(folder.c_str()) == 0 ? 0 : errno;
}

// Where a link to a folder leads, so that the new folder takes the place of the old one and the link stays.
std::string BehindLink(std::string path) {
  path = WithoutTrailingSlashes(std::move(path));
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return path;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(path, error);
  return error ? path : folder.string();
}

// Whether the folder holds a data.mdb and nothing that RemoveDatabase would leave.
bool HoldsOnlyDatabase(const std::string& folder) {
  DIR* directory = opendir(folder.c_str());
  if (!directory) return false;
  bool only = true;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    only &= name == "." || name == ".." || name == "data.mdb" || name == "lock.mdb";
  }
  closedir(directory);
  return only && IsTaken(folder + "/data.mdb");
}

}  // namespace

int KeyDigits(uint64_t count, int least) {
  return std::max(least, static_cast<int>(std::to_string(std::max<uint64_t>(count, 1) - 1).size()));
}

std::string RecordKey(uint64_t number, int digits) {
  std::string key = std::to_string(number);
  if (key.size() < static_cast<size_t>(digits)) key.insert(0, static_cast<size_t>(digits) - key.size(), '0');
  return key;
}

LmdbWriter::LmdbWriter(std::string path, Existing existing)
    : path_(existing == Existing::kReplace ? BehindLink(std::move(path)) : WithoutTrailingSlashes(std::move(path))),
      temporary_(TemporaryNameOf(path_)),
      existing_(existing) {
  if (path_.empty()) throw UserError("the path of the database to write is empty");
  if (existing == Existing::kRefuse) RefuseTaken(path_);
  CheckReplaced();
  MentionLeftovers(path_);
  if (mkdir(temporary_.c_str(), 0755) != 0) Fail("cannot create " + temporary_, errno);
  int status = mdb_env_create(&environment_);
  map_bytes_ = kFirstMapBytes;
  if (status == 0) status = mdb_env_set_mapsize(environment_, map_bytes_);
  // Nobody else knows the folder yet: neither locks nor syncs are needed before Commit.
  if (status == 0) {
    status = mdb_env_open(environment_, temporary_.c_str(), MDB_NOLOCK | MDB_NOTLS | MDB_NOSYNC, 0644);
  }
  if (status != 0) {
    Close();
    RemoveDatabase(temporary_);
    Fail("cannot create " + temporary_, status);
  }
}

LmdbWriter::~LmdbWriter() {
  Close();
  if (!temporary_.empty()) RemoveDatabase(temporary_);
}

void LmdbWriter::CheckReplaced() const {
  if (existing_ != Existing::kReplace || !IsTaken(path_) || HoldsOnlyDatabase(path_)) return;
  throw UserError("\"" + path_ + "\" exists and is not just an LMDB, so it is not replaced; remove it yourself or " +
                  "choose another name");
}

void LmdbWriter::Close() {
  if (transaction_) mdb_txn_abort(transaction_);
  if (environment_) mdb_env_close(environment_);
  transaction_ = nullptr;
  environment_ = nullptr;
}

void LmdbWriter::Fail(const std::string& what, int status) const {
  std::string remedy;
  struct statvfs disk;
  // LMDB reports a write that the full disk cut short as an input/output error.
  const bool nearly_full = status == EIO && statvfs(DirectoryOf(path_).c_str(), &disk) == 0 &&
                           uint64_t{disk.f_bavail} * disk.f_frsize < (64u << 20);
  if (status == ENOSPC || status == EDQUOT || nearly_full) {
    remedy = "; the disk is full, or a limit on file sizes (ulimit -f) is reached";
  }
  if (status == EFBIG) remedy = "; a limit on file sizes was hit (ulimit -f)";
  if (status == EACCES || status == EROFS) remedy = "; choose a folder you may write to";
  if (status == ENOENT) remedy = "; does its folder exist?";
  throw EnvironmentError(what + ": " + mdb_strerror(status) + remedy);
}

// Grows the map so that no write of the transaction can find it too small: LMDB could not go on after that.
void LmdbWriter::Begin(size_t first_record_bytes) {
  MDB_envinfo info;
  MDB_stat statistics;
  mdb_env_info(environment_, &info);
  mdb_env_stat(environment_, &statistics);
  const size_t page = statistics.ms_psize;
  const size_t used = (info.me_last_pgno + 1) * page;
  // Twice the payload for half-filled pages, two pages a record for rounding, and room for the tree above.
  const size_t wanted =
      used + 2 * (kTransactionBytes + first_record_bytes) + 2 * kTransactionRecords * page + kTransactionBytes;
  while (map_bytes_ < wanted) {
    map_bytes_ *= 2;
    const int status = mdb_env_set_mapsize(environment_, map_bytes_);
    if (status != 0)
      Fail("cannot grow the map of " + temporary_ + " to " + std::to_string(map_bytes_) + " bytes", status);
  }
  int status = mdb_txn_begin(environment_, nullptr, 0, &transaction_);
  if (status == 0) status = mdb_dbi_open(transaction_, nullptr, 0, &database_);
  if (status != 0) Fail("cannot write " + temporary_, status);
}

void LmdbWriter::Put(std::string_view key, std::string_view value) {
  CREMA_CHECK(environment_) << "Put after Flush";
  if (key.empty() || key.size() > kMaxKeyBytes) {
    throw UserError("a record's key must have 1 to 511 bytes, but this has " + std::to_string(key.size()) + ": \"" +
                    std::string(key.substr(0, 80)) + "\"");
  }
  const size_t bytes = key.size() + value.size();
  if (transaction_ && pending_bytes_ + bytes > kTransactionBytes) CommitTransaction();
  if (!transaction_) Begin(bytes);
  MDB_val mdb_key{key.size(), const_cast<char*>(key.data())}, mdb_value{value.size(), const_cast<char*>(value.data())};
  const unsigned flags = records_ == 0 || key > last_key_ ? MDB_APPEND : MDB_NOOVERWRITE;
  const int status = mdb_put(transaction_, database_, &mdb_key, &mdb_value, flags);
  if (status == MDB_KEYEXIST) throw UserError("the key \"" + std::string(key) + "\" is given twice for " + path_);
  CREMA_CHECK(status != MDB_MAP_FULL) << "map of " << map_bytes_ << " bytes";
  if (status != 0) Fail("cannot write " + temporary_, status);
  if (flags == MDB_APPEND) last_key_ = key;
  ++records_;
  pending_bytes_ += bytes;
  if (++pending_records_ == kTransactionRecords) CommitTransaction();
}

void LmdbWriter::CommitTransaction() {
  const int status = mdb_txn_commit(std::exchange(transaction_, nullptr));
  pending_bytes_ = pending_records_ = 0;
  if (status != 0) Fail("cannot write " + temporary_, status);
}

void LmdbWriter::Flush() {
  CREMA_CHECK(environment_) << "Flush twice";
  if (transaction_) CommitTransaction();
  const int status = mdb_env_sync(environment_, 1);
  if (status != 0) Fail("cannot flush " + temporary_, status);
  Close();
  SyncDirectory(temporary_);
  // Others may have put files there meanwhile.
  CheckReplaced();
}

void LmdbWriter::RemoveReplaced() {
  if (existing_ != Existing::kReplace || !IsTaken(path_)) return;
  // The name goes first: what is left when this is killed on the way is no half of a database.
  const std::string old = temporary_ + ".old";
  RemoveDatabase(old);
  int status = rename(path_.c_str(), old.c_str()) == 0 ? 0 : errno;
  if (status == 0) status = RemoveDatabase(old);
  if (status != 0) Fail("cannot replace " + path_, status);
}

void LmdbWriter::Commit() {
  CREMA_CHECK(!temporary_.empty()) << "Commit twice";
  if (environment_) Flush();
  bool exchanged = false;
  if (existing_ == Existing::kReplace && IsTaken(path_)) {
    // One step where the file system can exchange names, so that the path always holds a whole database.
    exchanged = renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0;
    if (!exchanged) RemoveReplaced();
  }
  if (!exchanged && rename(temporary_.c_str(), path_.c_str()) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) {
      throw UserError("\"" + path_ + "\" came into being meanwhile and is not replaced");
    }
    Fail("cannot rename " + temporary_ + " to " + path_, errno);
  }
  SyncDirectory(DirectoryOf(path_));
  if (exchanged) RemoveDatabase(temporary_);
  temporary_.clear();
}

}  // namespace crema
