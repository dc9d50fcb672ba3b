#include "solver/snapshots/checksum.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/crc32.h"
#include "crema/error.h"

namespace crema {

Checksum ChecksumOf(const std::string& path, uint64_t limit) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  Checksum sum;
  while (sum.bytes < limit) {
    file.read(buffer.data(), static_cast<std::streamsize>(std::min<uint64_t>(buffer.size(), limit - sum.bytes)));
    const size_t got = static_cast<size_t>(file.gcount());
    if (file.bad() || !file.is_open()) throw EnvironmentError("cannot read " + path + ": " + std::strerror(errno));
    if (got == 0) break;
    sum.crc32 = Crc32(buffer.data(), got, sum.crc32);
    sum.bytes += got;
  }
  return sum;
}

}  // namespace crema
