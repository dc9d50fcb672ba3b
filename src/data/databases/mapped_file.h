// Files that are mapped into memory, and may lose their pages while they are read.
#ifndef CREMA_DATA_DATABASES_MAPPED_FILE_H_
#define CREMA_DATA_DATABASES_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace crema {

// Who reads a page that its file no longer has (it was cut or written over, the disk fails, the server of the file
// system has forgotten it) gets SIGBUS, which ends the process. Of what is watched such pages read as zeros instead,
// and it is known that there were some. The first one of a process installs a handler of SIGBUS, which leaves all other
// addresses to the handler before it. At most 256 at a time: what comes then is not watched. Any thread may ask.
class WatchedMap {
 public:
  // Memory that stays mapped as long as this lives.
  WatchedMap(const std::byte* begin, uint64_t bytes);
  ~WatchedMap();
  WatchedMap(const WatchedMap&) = delete;
  WatchedMap& operator=(const WatchedMap&) = delete;

  // Whether a page was found to be lost.
  bool lost() const;
  // Reads a byte of each page of `part`, so that lost() tells of them.
  static void Touch(std::span<const std::byte> part);

 private:
  struct WatchedSlot* slot_ = nullptr;
};

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_MAPPED_FILE_H_
