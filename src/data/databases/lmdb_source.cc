#include "data/databases/lmdb_source.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "base/log.h"
#include "base/once.h"
#include "base/printable.h"
#include "crema/error.h"
#include "data/databases/lmdb_pages.h"
#include "data/databases/mapped_file.h"

namespace crema {

namespace {

std::span<const std::byte> Bytes(const MDB_val& value) {
  return {static_cast<const std::byte*>(value.mv_data), value.mv_size};
}

std::string PrintableKey(const MDB_val& key) { return Printable({static_cast<const char*>(key.mv_data), key.mv_size}); }

// Where the mapping begins that `address` is in; null where that is not known. LMDB tells of fixed ones only.
const std::byte* MappingOf(const std::byte* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::string line;
  while (std::getline(maps, line)) {
    char* dash = nullptr;
    const uintptr_t begin = std::strtoull(line.c_str(), &dash, 16);
    if (*dash == '-' && begin <= wanted && wanted < std::strtoull(dash + 1, nullptr, 16)) {
      return reinterpret_cast<const std::byte*>(begin);
    }
  }
  return nullptr;
}

class Cursor {
 public:
  Cursor(MDB_txn* transaction, MDB_dbi database, const std::string& folder) {
    const int status = mdb_cursor_open(transaction, database, &cursor_);
    if (status != 0) ThrowDamaged(folder, mdb_strerror(status));
  }
  ~Cursor() { mdb_cursor_close(cursor_); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  int Next(MDB_val* key, MDB_val* value) { return mdb_cursor_get(cursor_, key, value, MDB_NEXT); }

 private:
  MDB_cursor* cursor_ = nullptr;
};

// One open database. The read transaction lives as long, so that pointers into the map stay valid.
class Environment {
 public:
  explicit Environment(const std::string& folder);
  ~Environment() { Close(); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  uint64_t count() const { return tree_.entries; }
  uint64_t bytes() const { return map_bytes_; }
  void ExpectReadAhead() const;
  void ReadAhead(uint64_t first, uint64_t count) const;
  std::span<const std::byte> Read(uint64_t i) const;
  std::span<const std::byte> Peek(uint64_t i) const;
  std::string Key(uint64_t i) const;
  void VisitKeys(const std::function<bool(uint64_t, const std::string&)>& visit) const;

 private:
  const std::vector<std::span<const std::byte>>& index() const;
  int Open(unsigned extra_flags);
  void Close();
  LmdbPages Pages() const;
  void FindTree();
  void CheckAll() const;
  void Advise(const std::byte* begin, uint64_t bytes, int advice) const;
  void AdviseAll(int advice) const {
    if (const std::byte* const map = MappingOf(first_.data())) Advise(map, map_bytes_, advice);
  }

  std::string folder_;
  MDB_env* environment_ = nullptr;
  MDB_txn* transaction_ = nullptr;
  MDB_dbi database_ = 0;
  LmdbTree tree_;
  uint64_t map_bytes_ = 0;  // as far as there is something in the file
  std::span<const std::byte> first_;
  std::optional<WatchedMap> watched_;
  mutable std::mutex transaction_mutex_;  // LMDB allows one thread at a time in a transaction
  mutable Once checked_, indexed_;
  mutable std::vector<std::span<const std::byte>> index_;
};

// Called where LMDB meets what cannot be in a page; it gives the process up behind it, and so does this, but by name.
[[noreturn]] void EndForDamage(MDB_env* environment, const char* what) {
  const auto* folder = static_cast<const std::string*>(mdb_env_get_userctx(environment));
  const std::string text =
      "error: database \"" + *folder + "\" is damaged (LMDB: " + what + "); copy it again or make it anew\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  constexpr int kUserError = 2;
  _exit(kUserError);
}

int Environment::Open(unsigned extra_flags) {
  CheckLmdbMetaPages(folder_);
  int status = mdb_env_create(&environment_);
  if (status == 0) status = mdb_env_set_userctx(environment_, &folder_);
  if (status == 0) status = mdb_env_set_assert(environment_, EndForDamage);
  // The file of locks, where there is none yet, is for all whom the umask lets.
  constexpr mdb_mode_t kLockMode = 0666;
  if (status == 0)
    status = mdb_env_open(environment_, folder_.c_str(), MDB_RDONLY | MDB_NOTLS | extra_flags, kLockMode);
  if (status == 0) status = mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &transaction_);
  return status;
}

void Environment::Close() {
  watched_.reset();
  if (transaction_) mdb_txn_abort(transaction_);
  if (environment_) mdb_env_close(environment_);
  transaction_ = nullptr;
  environment_ = nullptr;
}

LmdbPages Environment::Pages() const {
  MDB_stat statistics;
  int fd = -1;
  if (mdb_env_stat(environment_, &statistics) != 0 || mdb_env_get_fd(environment_, &fd) != 0) {
    throw EnvironmentError("cannot look at " + folder_ + "/data.mdb");
  }
  return LmdbPages(folder_, fd, statistics.ms_psize);
}

// Finds what the transaction began with, on the meta page that it took it from.
void Environment::FindTree() {
  for (int attempts = 10; attempts > 0; --attempts) {
    const LmdbPages pages = Pages();
    tree_ = pages.Tree(mdb_txn_id(transaction_) % 2);
    MDB_stat seen;
    const int status = mdb_stat(transaction_, database_, &seen);
    if (status != 0) ThrowDamaged(folder_, mdb_strerror(status));
    if (tree_.entries == seen.ms_entries && tree_.depth == seen.ms_depth &&
        tree_.branch_pages == seen.ms_branch_pages && tree_.leaf_pages == seen.ms_leaf_pages &&
        tree_.overflow_pages == seen.ms_overflow_pages) {
      pages.CheckFirstRecord(tree_);
      map_bytes_ = (tree_.last_page + 1) * seen.ms_psize;
      return;
    }
    // Another process has written over it since.
    mdb_txn_reset(transaction_);
    if (mdb_txn_renew(transaction_) != 0) break;
  }
  throw EnvironmentError("database \"" + folder_ + "\" is written too often to be opened meanwhile");
}

void Environment::CheckAll() const {
  checked_.Do([this] { Pages().CheckAll(tree_); });
}

void Environment::Advise(const std::byte* begin, uint64_t bytes, int advice) const {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin), of_page = first % page;
  // It is a hint: where the system does not take it, reading is slower, not wrong.
  madvise(reinterpret_cast<void*>(first - of_page), bytes + of_page, advice);
}

void Environment::ExpectReadAhead() const {
  index();  // is read once, in order of its own
  // A page that is touched too early brings megabytes of its neighbours along otherwise.
  AdviseAll(MADV_RANDOM);
}

void Environment::ReadAhead(uint64_t first, uint64_t count) const {
  // Records of one gap at most are asked for together: the disk reads on rather than seeks.
  constexpr ptrdiff_t kGap = 256 << 10;
  const auto& records = index();
  std::span<const std::byte> run = records[first];
  for (const std::span<const std::byte>& next : std::span(records).subspan(first + 1, count - 1)) {
    const std::byte* const end = run.data() + run.size();
    if (next.data() >= end && next.data() - end <= kGap) {
      run = {run.data(), next.data() + next.size()};
    } else {
      Advise(run.data(), run.size(), MADV_WILLNEED);
      run = next;
    }
  }
  Advise(run.data(), run.size(), MADV_WILLNEED);
}

Environment::Environment(const std::string& folder) : folder_(folder) {
  struct stat data;
  if (stat((folder + "/data.mdb").c_str(), &data) == 0 && S_ISREG(data.st_mode) && data.st_size == 0) {
    throw UserError("database \"" + folder + "\" holds nothing: data.mdb has 0 bytes; copy it again or make it anew");
  }
  try {
    int status = Open(0);
    // Positive: an errno, not one of LMDB's own codes.
    if (status > 0 || status == MDB_READERS_FULL) {
      const int cause = status;
      Close();
      status = Open(MDB_NOLOCK);
      if (status == 0) {
        struct stat locks;
        const std::string path = folder_ + "/lock.mdb";
        const bool shut = stat(path.c_str(), &locks) == 0 && (locks.st_mode & 0777) == 0;
        LOG(WARNING) << "reading " << folder_ << " without LMDB's locks (" << mdb_strerror(cause)
                     << "); do not write to it meanwhile"
                     << (shut ? "; nobody may open " + path + ": remove it where no program uses the database" : "");
      }
    }
    if (status > 0) {
      FailToRead(
          folder_,
          std::string(mdb_strerror(status)) +
              (status == ENOMEM ? "; it is mapped into memory: is there a limit on addresses (ulimit -v)?" : ""));
    }
    if (status == MDB_INVALID || status == MDB_VERSION_MISMATCH || status == MDB_CORRUPTED) {
      throw UserError("\"" + folder_ + "/data.mdb\" is not an LMDB file that can be read: " + mdb_strerror(status) +
                      "; make the database anew with convert_mnist_data or convert_imageset");
    }
    if (status == 0) status = mdb_dbi_open(transaction_, nullptr, 0, &database_);
    if (status != 0) ThrowDamaged(folder_, mdb_strerror(status));
    FindTree();
    if (tree_.entries == 0) {
      throw UserError("database \"" + folder_ + "\" is empty; was its conversion interrupted? Make it anew");
    }
    MDB_val key, value;
    status = Cursor(transaction_, database_, folder_).Next(&key, &value);
    if (status != 0) ThrowDamaged(folder_, mdb_strerror(status));
    first_ = Bytes(value);
    if (const std::byte* const map = MappingOf(first_.data())) watched_.emplace(map, map_bytes_);
  } catch (...) {
    Close();
    throw;
  }
}

std::span<const std::byte> Environment::Peek(uint64_t i) const { return i == 0 ? first_ : index()[i]; }

std::span<const std::byte> Environment::Read(uint64_t i) const {
  const std::span<const std::byte> record = Peek(i);
  if (!watched_) return record;
  WatchedMap::Touch(record);
  if (!watched_->lost()) return record;
  throw EnvironmentError("database \"" + folder_ + "\" lost pages of data.mdb while it was read, at record number " +
                         std::to_string(i) +
                         " or before: the file was cut or written over in place, or its disk or server fails; copy it "
                         "again, and not over a file that is in use");
}

const std::vector<std::span<const std::byte>>& Environment::index() const {
  indexed_.Do([this] {
    CheckAll();
    const std::lock_guard lock(transaction_mutex_);
    // The pages of the keys lie scattered among those of the values, which need not be read for the index.
    if (tree_.sparse_keys()) AdviseAll(MADV_RANDOM);
    Cursor cursor(transaction_, database_, folder_);
    std::vector<std::span<const std::byte>> index;
    index.reserve(tree_.entries);
    MDB_val key, value;
    int status = 0;
    while (index.size() <= tree_.entries && (status = cursor.Next(&key, &value)) == 0) index.push_back(Bytes(value));
    if (tree_.sparse_keys()) AdviseAll(MADV_NORMAL);
    if (status != 0 && status != MDB_NOTFOUND) ThrowDamaged(folder_, mdb_strerror(status));
    if (index.size() != tree_.entries) {
      ThrowDamaged(folder_, "it promises " + std::to_string(tree_.entries) + " records, and its cursor finds others");
    }
    index_ = std::move(index);
  });
  return index_;
}

std::string Environment::Key(uint64_t i) const {
  if (i > 0) CheckAll();
  const std::lock_guard lock(transaction_mutex_);
  Cursor cursor(transaction_, database_, folder_);
  MDB_val key{}, value;
  for (uint64_t at = 0; at <= i; ++at) {
    if (cursor.Next(&key, &value) != 0) return "number " + std::to_string(i);
  }
  return PrintableKey(key);
}

void Environment::VisitKeys(const std::function<bool(uint64_t, const std::string&)>& visit) const {
  CheckAll();
  // Not locked while it visits, so that the visitor may read.
  std::unique_lock lock(transaction_mutex_);
  Cursor cursor(transaction_, database_, folder_);
  MDB_val key, value;
  bool more = true;
  for (uint64_t i = 0; more && cursor.Next(&key, &value) == 0; ++i) {
    const std::string printable = PrintableKey(key);
    lock.unlock();
    more = visit(i, printable);
    lock.lock();
  }
}

std::shared_ptr<const Environment> SharedEnvironment(const std::string& folder) {
  struct stat status;
  if (stat((folder + "/data.mdb").c_str(), &status) != 0) {
    throw EnvironmentError("cannot look at " + folder + "/data.mdb: " + std::strerror(errno));
  }
  static std::mutex mutex;
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const Environment>> open;
  const std::lock_guard lock(mutex);
  std::erase_if(open, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Environment>& slot = open[{status.st_dev, status.st_ino}];
  std::shared_ptr<const Environment> environment = slot.lock();
  if (!environment) slot = environment = std::make_shared<const Environment>(folder);
  return environment;
}

class LmdbSource : public RecordSource {
 public:
  explicit LmdbSource(const std::string& folder) : path_(folder), environment_(SharedEnvironment(folder)) {}

  uint64_t count() const override { return environment_->count(); }
  std::span<const std::byte> Read(uint64_t i) const override { return environment_->Read(i); }
  std::span<const std::byte> Peek(uint64_t i) const override { return environment_->Peek(i); }
  uint64_t bytes() const override { return environment_->bytes(); }
  void ExpectReadAhead() const override { environment_->ExpectReadAhead(); }
  void ReadAhead(uint64_t first, uint64_t count) const override { environment_->ReadAhead(first, count); }
  std::string Key(uint64_t i) const override { return environment_->Key(i); }
  void VisitKeys(const std::function<bool(uint64_t, const std::string&)>& visit) const override {
    environment_->VisitKeys(visit);
  }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  std::shared_ptr<const Environment> environment_;
};

}  // namespace

std::shared_ptr<const RecordSource> OpenLmdb(const std::string& folder) { return std::make_shared<LmdbSource>(folder); }

}  // namespace crema
