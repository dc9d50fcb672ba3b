#include "leveldb/source_environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace crema::level_db {

namespace {

using leveldb::Slice;
using leveldb::Status;

// LevelDB's own maps files into memory, where a disk that cannot be read kills the process.
class FileOnDisk : public leveldb::RandomAccessFile {
 public:
  FileOnDisk(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
  ~FileOnDisk() override { close(descriptor_); }

  Status Read(uint64_t offset, size_t bytes, Slice* result, char* scratch) const override {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t read = pread(descriptor_, scratch + done, bytes - done, static_cast<off_t>(offset + done));
      if (read < 0 && errno == EINTR) continue;
      if (read < 0) return Status::IOError(name_, std::strerror(errno));
      if (read == 0) return Status::Corruption(name_, "is cut short");
      done += static_cast<size_t>(read);
    }
    *result = Slice(scratch, bytes);
    return {};
  }

 private:
  std::string name_;
  int descriptor_;
};

class FileInMemory : public leveldb::RandomAccessFile {
 public:
  explicit FileInMemory(std::shared_ptr<const std::string> bytes) : bytes_(std::move(bytes)) {}

  Status Read(uint64_t offset, size_t bytes, Slice* result, char*) const override {
    const size_t begin = std::min<uint64_t>(offset, bytes_->size());
    *result = Slice(bytes_->data() + begin, std::min(bytes, bytes_->size() - begin));
    return {};
  }

 private:
  std::shared_ptr<const std::string> bytes_;
};

class WriterToMemory : public leveldb::WritableFile {
 public:
  explicit WriterToMemory(std::shared_ptr<std::string> bytes) : bytes_(std::move(bytes)) {}

  Status Append(const Slice& data) override {
    bytes_->append(data.data(), data.size());
    return {};
  }
  Status Close() override { return {}; }
  Status Flush() override { return {}; }
  Status Sync() override { return {}; }

 private:
  std::shared_ptr<std::string> bytes_;
};

class NoLogger : public leveldb::Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

class NoLock : public leveldb::FileLock {};

}  // namespace

Status SourceEnvironment::NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** file) {
  *file = nullptr;
  const std::lock_guard lock(mutex_);
  if (const auto written = written_.find(name); written != written_.end()) {
    *file = new FileInMemory(written->second);
    return {};
  }
  const int descriptor = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const char* const cause = std::strerror(errno);
    return errno == ENOENT ? Status::NotFound(name, cause) : Status::IOError(name, cause);
  }
  *file = new FileOnDisk(name, descriptor);
  return {};
}

Status SourceEnvironment::NewWritableFile(const std::string& name, leveldb::WritableFile** file) {
  *file = nullptr;
  // Compaction would keep half of the database in memory. LevelDB gives it up at the first error, and reads on.
  if (std::this_thread::get_id() != thread_) return Status::IOError(name, "the database is only read");
  const std::lock_guard lock(mutex_);
  std::shared_ptr<std::string>& bytes = written_[name];
  bytes = std::make_shared<std::string>();
  *file = new WriterToMemory(bytes);
  return {};
}

Status SourceEnvironment::NewAppendableFile(const std::string& name, leveldb::WritableFile** file) {
  *file = nullptr;
  return Status::NotSupported(name, "the database is only read");
}

Status SourceEnvironment::LockFile(const std::string&, leveldb::FileLock** lock) {
  *lock = new NoLock;
  return {};
}

Status SourceEnvironment::UnlockFile(leveldb::FileLock* lock) {
  delete lock;
  return {};
}

Status SourceEnvironment::NewLogger(const std::string&, leveldb::Logger** logger) {
  *logger = new NoLogger;
  return {};
}

}  // namespace crema::level_db
