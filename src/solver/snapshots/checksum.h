// Checksums of files that lie on the disk.
#ifndef CREMA_SOLVER_SNAPSHOTS_CHECKSUM_H_
#define CREMA_SOLVER_SNAPSHOTS_CHECKSUM_H_

#include <cstdint>
#include <limits>
#include <string>

namespace crema {

struct Checksum {
  uint64_t bytes = 0;
  uint32_t crc32 = 0;  // as zlib computes it
};

// Of the first `limit` bytes of a file, or of all there are. Throws EnvironmentError where it cannot be read.
Checksum ChecksumOf(const std::string& path, uint64_t limit = std::numeric_limits<uint64_t>::max());

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_CHECKSUM_H_
