#include "solver/snapshots/checksum.h"

#include <string_view>

#include "base/crc32.h"
#include "base/input_file.h"

namespace crema {

Checksum ChecksumOf(const std::string& path, uint64_t limit) {
  Checksum sum;
  VisitFile(path, [&sum, limit](std::string_view part) {
    part = part.substr(0, limit - sum.bytes);
    sum.crc32 = Crc32(part.data(), part.size(), sum.crc32);
    sum.bytes += part.size();
    return sum.bytes < limit;
  });
  return sum;
}

}  // namespace crema
