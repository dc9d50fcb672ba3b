#include "distributed/sockets/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "crema/error.h"

namespace crema {

namespace {

constexpr std::string_view kFolderPrefix = "crema-", kSocket = "socket";

// Locks a folder of this user's; -1 where it is none, or another process has it.
int Lock(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || (fstat(fd, &status) == 0 && status.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)) return fd;
  close(fd);
  return -1;
}

// Nothing in it, and as mkdtemp made it: a process was killed before it listened there.
bool IsUnused(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::status(folder, ignored).permissions() == std::filesystem::perms::owner_all &&
         std::filesystem::is_empty(folder, ignored);
}

// Those of processes that were killed: with a socket in them, or nothing, and no lock.
void RemoveAbandoned(const std::filesystem::path& temporary) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(temporary, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kFolderPrefix) || name.size() != kFolderPrefix.size() + 6) continue;
    if (!std::filesystem::is_socket(entry.path() / kSocket, ignored) && !IsUnused(entry.path())) continue;
    const int fd = Lock(entry.path().string());
    if (fd < 0) continue;
    unlink((entry.path() / kSocket).c_str());
    rmdir(entry.path().c_str());
    close(fd);
  }
}

// Whether this is what has the name still.
bool IsAt(int fd, const std::string& path) {
  struct stat held, named;
  return fd >= 0 && fstat(fd, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino;
}

}  // namespace

PrivateFolder::PrivateFolder() {
  const char* const folder = std::getenv("TMPDIR");
  // A socket's path has at most 107 characters.
  const std::string temporary = folder && *folder && std::strlen(folder) < 60 ? folder : "/tmp";
  RemoveAbandoned(temporary);
  constexpr int kAttempts = 10;
  for (int attempt = 1;; ++attempt) {
    std::string pattern = temporary + "/" + std::string(kFolderPrefix) + "XXXXXX";
    if (!mkdtemp(pattern.data())) {
      throw EnvironmentError("cannot make a folder for temporary files, " + pattern + ": " + std::strerror(errno) +
                             "; TMPDIR says where they go");
    }
    path_ = pattern;
    lock_ = Lock(path_);
    // Until it has its lock another process may take it for one that was left. Not every file system has locks.
    if (IsAt(lock_, path_) || attempt == kAttempts) return;
    if (lock_ >= 0) close(lock_);
    rmdir(path_.c_str());
  }
}

std::string PrivateFolder::socket() const { return path_ + "/" + std::string(kSocket); }

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
  RemoveAbandoned(std::filesystem::path(path_).parent_path());
}

}  // namespace crema
