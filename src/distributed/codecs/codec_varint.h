// Integers in as few bytes as they need (LEB128, as protobuf writes them); only codecs include it.
#ifndef CREMA_DISTRIBUTED_CODECS_CODEC_VARINT_H_
#define CREMA_DISTRIBUTED_CODECS_CODEC_VARINT_H_

#include <cstddef>
#include <cstdint>

namespace crema {

inline constexpr size_t kLongestVarint = 10;

inline size_t BytesOfVarint(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

// Returns the place after it. `to` has room for kLongestVarint bytes, or for BytesOfVarint(value).
inline std::byte* PutVarint(uint64_t value, std::byte* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::byte>(value | 0x80);
  *to++ = static_cast<std::byte>(value);
  return to;
}

// Returns the place after it, or null where [from, end) does not begin with a varint below 2^63 in its shortest form.
inline const std::byte* GetVarint(const std::byte* from, const std::byte* end, uint64_t* value) {
  *value = 0;
  for (int shift = 0; from < end && shift < 63; shift += 7) {
    const auto byte = static_cast<uint64_t>(*from++);
    *value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return byte == 0 && shift > 0 ? nullptr : from;
  }
  return nullptr;
}

// The most bytes of n varints, none above `largest`, whose sum is at most `sum`.
inline size_t BytesOfVarintsAtMost(size_t n, size_t sum, size_t largest) {
  size_t bytes = n;
  for (int shift = 7; shift < 63 && (largest >> shift) > 0; shift += 7) {
    const size_t longer = sum >> shift;  // so many can need one byte more
    bytes += longer < n ? longer : n;
  }
  return bytes;
}

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_CODECS_CODEC_VARINT_H_
