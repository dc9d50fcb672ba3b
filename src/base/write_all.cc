#include "base/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace crema {

namespace {

// write(data, bytes, done): as write(2) does, with so many bytes written before.
template <typename Write>
bool WriteWhole(const void* data, size_t bytes, const Write& write) {
  const char* const begin = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes;) {
    const ssize_t written = write(begin + done, bytes - done, done);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

bool WriteAll(int fd, const void* data, size_t bytes) {
  return WriteWhole(data, bytes, [fd](const char* from, size_t count, size_t) { return write(fd, from, count); });
}

bool WriteAll(int fd, const void* data, size_t bytes, uint64_t at) {
  return WriteWhole(data, bytes, [fd, at](const char* from, size_t count, size_t done) {
    return pwrite(fd, from, count, static_cast<off_t>(at + done));
  });
}

}  // namespace crema
