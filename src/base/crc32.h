// Checksums as zlib computes them.
#ifndef CREMA_BASE_CRC32_H_
#define CREMA_BASE_CRC32_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>

namespace crema {

// CRC-32 of `data` behind bytes whose checksum is `before`.
inline uint32_t Crc32(const void* data, size_t bytes, uint32_t before = 0) {
  return static_cast<uint32_t>(crc32_z(before, static_cast<const unsigned char*>(data), bytes));
}

}  // namespace crema

#endif  // CREMA_BASE_CRC32_H_
