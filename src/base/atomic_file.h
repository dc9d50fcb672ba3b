// Files that are either whole or absent under their final name.
#ifndef CREMA_BASE_ATOMIC_FILE_H_
#define CREMA_BASE_ATOMIC_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace crema {

// What errno said when a file could not be made or written, and what may help.
std::string WriteFailure(int error);

struct AtomicFileOptions {
  // Permissions, of which the umask takes its part: those of the temporary file, too, from its first moment on.
  mode_t mode = 0644;
  // false: Commit throws UserError where the target exists by then, and leaves it as it is.
  bool replace = true;
  // false: Commit leaves it to the system when the file reaches the disk, which is much faster for many small files.
  // Who wrote them ends with SyncFiles.
  bool flush = true;
};

// Writes beside the target, flushes to the disk and renames. Without Commit the target is untouched and the temporary
// file is removed. A link is replaced, not what it names. Throws EnvironmentError (naming the file and the cause) when
// the disk is full or not writable, or the target is no regular file.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path, AtomicFileOptions options = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(const void* data, size_t bytes);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  // Brings what was written to the disk, as Commit does, too: who writes several files that belong together flushes all
  // before the first one gets its name.
  void Flush();
  void Commit();

  // Where the file lies until Commit, for libraries that write it themselves.
  const std::string& temporary() const { return temporary_; }

  // Of what Write wrote.
  uint64_t bytes() const { return bytes_; }
  uint32_t crc32() const { return crc32_; }  // as zlib computes it

 private:
  std::string path_, temporary_;
  bool replace_, flush_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  uint32_t crc32_ = 0;
};

// A file that is one text.
void WriteWholeFile(const std::string& path, std::string_view bytes, AtomicFileOptions options = {});

// Makes a rename inside `directory` durable.
void SyncDirectory(const std::string& directory);

// Waits until all files that were written in and below `directory` are on the disk. Throws EnvironmentError.
void SyncFiles(const std::string& directory);

// A name beside `path` for what is not whole yet: `<path>.tmp.<number>`, with another number each time. The number of
// the process would not do: it repeats on other machines, and in containers, that write to the same disk.
std::string TemporaryNameOf(const std::string& path);

// Whether a name ends as those of TemporaryNameOf do.
bool IsTemporaryName(std::string_view name);

}  // namespace crema

#endif  // CREMA_BASE_ATOMIC_FILE_H_
