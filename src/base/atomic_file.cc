#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/crc32.h"
#include "base/paths.h"
#include "base/write_all.h"
#include "crema/error.h"

namespace crema {

std::string WriteFailure(int error) {
  std::string remedy;
  if (error == ENOSPC || error == EDQUOT) remedy = "; free some space and try again";
  if (error == EFBIG) remedy = "; a limit on file sizes was hit (ulimit -f)";
  if (error == EACCES || error == EROFS) remedy = "; choose a folder you may write to";
  if (error == ENOENT) remedy = "; does its folder exist?";
  if (error == EAGAIN) return "the pipe is full, and nobody reads it";
  return std::strerror(error) + remedy;
}

namespace {

constexpr std::string_view kTemporary = ".tmp.";

[[noreturn]] void FailWith(const std::string& what, const std::string& path) {
  const std::string failure = WriteFailure(errno);
  throw EnvironmentError(what + " " + path + ": " + failure);
}

// Like rename, but fails with EEXIST where `to` exists. Not every file system has the first way, or the second.
int RenameWithoutReplacing(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (link(from, to) != 0) return -1;
  unlink(from);
  return 0;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, AtomicFileOptions options)
    : path_(std::move(path)), temporary_(TemporaryNameOf(path_)), replace_(options.replace), flush_(options.flush) {
  // Renaming would put a file in the place of a device or pipe, and fails for a folder when all is written.
  struct stat there {};
  if (stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    throw EnvironmentError("cannot write " + path_ + ": it is " +
                           (S_ISDIR(there.st_mode) ? "a folder" : "no regular file, and is not replaced by one"));
  }
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, options.mode);
  if (fd_ < 0) FailWith("cannot create", temporary_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    close(fd_);
    unlink(temporary_.c_str());
  }
}

void AtomicFile::Write(const void* data, size_t bytes) {
  crc32_ = Crc32(data, bytes, crc32_);
  bytes_ += bytes;
  if (!WriteAll(fd_, data, bytes)) FailWith("cannot write", temporary_);
}

void AtomicFile::Flush() {
  if (flush_ && fsync(fd_) != 0) FailWith("cannot flush", temporary_);
}

void AtomicFile::Commit() {
  Flush();
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0 || (replace_ ? rename(temporary_.c_str(), path_.c_str())
                                  : RenameWithoutReplacing(temporary_.c_str(), path_.c_str())) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    errno = error;
    if (!replace_ && error == EEXIST) {
      throw UserError(Location{path_}, "exists already, and is left as it is; remove it, or choose another name");
    }
    FailWith("cannot finish", path_);
  }
  if (flush_) SyncDirectory(DirectoryOf(path_));
}

void WriteWholeFile(const std::string& path, std::string_view bytes, AtomicFileOptions options) {
  AtomicFile file(path, options);
  file.Write(bytes);
  file.Commit();
}

void SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

void SyncFiles(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) FailWith("cannot flush", directory);
  const int failed = syncfs(fd);
  const int error = errno;
  close(fd);
  errno = error;
  if (failed != 0) FailWith("cannot flush", directory);
}

std::string TemporaryNameOf(const std::string& path) {
  return path + std::string(kTemporary) + std::to_string(std::random_device{}());
}

bool IsTemporaryName(std::string_view name) {
  const size_t mark = name.rfind(kTemporary);
  if (mark == std::string_view::npos) return false;
  const std::string_view number = name.substr(mark + kTemporary.size());
  return !number.empty() && std::all_of(number.begin(), number.end(), [](unsigned char c) { return isdigit(c); });
}

}  // namespace crema
