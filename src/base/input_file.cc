#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <istream>
#include <memory>
#include <system_error>

#include "base/placeholder.h"
#include "crema/error.h"

namespace crema {

namespace {

// Of /dev/zero, say. A terminal, which a person ends, is none here.
bool IsDevice(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return false;
  if (!S_ISCHR(status.st_mode)) return S_ISBLK(status.st_mode);
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return true;
  const bool terminal = ::isatty(fd) == 1;
  ::close(fd);
  return !terminal;
}

// Those without a name, as of <(command) or behind /dev/stdin, have somebody who writes.
bool IsNamedPipe(const std::string& path) {
  std::error_code unnamed;
  // Of one without a name, /proc/self/fd/63 leads to "pipe:[4711]", where nothing is.
  const std::filesystem::path place = std::filesystem::canonical(path, unnamed);
  return !unnamed && std::filesystem::is_fifo(place, unnamed);
}

bool IsAbsent(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

using OpenFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

OpenFile OpenToRead(const std::string& path) {
  if (const std::string other = OtherThanFile(path); !other.empty()) FailToRead(path, "it " + other);
  OpenFile file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) FailToRead(path, errno);
  return file;
}

// 0 at the end.
size_t ReadPart(const std::string& path, const OpenFile& file, void* to, size_t bytes) {
  const size_t got = std::fread(to, 1, bytes, file.get());
  if (std::ferror(file.get())) FailToRead(path, errno);
  return got;
}

template <typename Bytes>
Bytes ReadWhole(const std::string& path) {
  const OpenFile file = OpenToRead(path);
  Bytes bytes;
  size_t used = 0;
  for (;;) {
    bytes.resize(used + (used == 0 ? size_t{1} << 16 : used));
    const size_t got = ReadPart(path, file, bytes.data() + used, bytes.size() - used);
    used += got;
    if (got == 0) break;
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace

std::string RelativePathNote(const std::string& path) {
  const std::string note = PlaceholderNote(path);
  if (!note.empty() || path.starts_with('/')) return note;
  std::error_code ignored;
  return "; relative paths start at the working directory " + std::filesystem::current_path(ignored).string();
}

std::string OtherThanFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return "is a folder";
  if (IsNamedPipe(path)) return "is a named pipe, which would be waited for until somebody writes";
  return IsDevice(path) ? "is a device" : "";
}

void ExpectFile(const std::string& path, const std::string& what) {
  if (IsAbsent(path)) {
    throw UserError("\"" + path + "\" does not exist; expected " + what + RelativePathNote(path));
  }
  if (const std::string other = OtherThanFile(path); !other.empty()) {
    throw UserError("\"" + path + "\" " + other + "; expected " + what);
  }
}

void CheckReadableFile(const std::string& path, const std::string& kind) {
  if (path.empty()) throw UserError("the path of a " + kind + " file is empty");
  if (IsAbsent(path)) throw UserError({path}, "there is no such file" + RelativePathNote(path));
  if (const std::string other = OtherThanFile(path); !other.empty()) {
    throw UserError({path}, other + "; expected a " + kind + " file");
  }
  if (::access(path.c_str(), R_OK) != 0) FailToRead(path, errno);
}

void CheckRegularFile(const std::string& path, const std::string& kind) {
  CheckReadableFile(path, kind);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return;
  throw UserError({path}, "is a pipe; expected a " + kind + " file");
}

void FailToRead(const std::string& path, const std::string& reason) {
  throw EnvironmentError(path + ": cannot be read: " + reason);
}

void FailToRead(const std::string& path, int error) { FailToRead(path, std::string(std::strerror(error))); }

void FailToRead(const std::string& path, const std::istream& file) {
  FailToRead(path, file.eof() ? "it ends early" : std::string(std::strerror(errno)));
}

void VisitFile(const std::string& path, const std::function<bool(std::string_view)>& visit) {
  const OpenFile file = OpenToRead(path);
  std::vector<char> block(size_t{1} << 16);
  for (;;) {
    const size_t got = ReadPart(path, file, block.data(), block.size());
    if (got == 0 || !visit({block.data(), got})) return;
  }
}

std::vector<uint8_t> ReadFileBytes(const std::string& path) { return ReadWhole<std::vector<uint8_t>>(path); }

std::string ReadFileText(const std::string& path) { return ReadWhole<std::string>(path); }

}  // namespace crema
