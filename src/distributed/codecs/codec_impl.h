// What the codecs share; only their own files include it.
#ifndef CREMA_DISTRIBUTED_CODECS_CODEC_IMPL_H_
#define CREMA_DISTRIBUTED_CODECS_CODEC_IMPL_H_

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "distributed/codecs/codec.h"

namespace crema {

static_assert(std::endian::native == std::endian::little, "codes are written as the memory holds them");

std::unique_ptr<const Codec> MakeFloat32Codec();
std::unique_ptr<const Codec> MakeFloat16Codec();
std::unique_ptr<const Codec> MakeBFloat16Codec();
std::unique_ptr<const Codec> MakeInt8Codec();
std::unique_ptr<const Codec> MakeTopKCodec(double ratio);
std::unique_ptr<const Codec> MakeThresholdCodec(float threshold);
std::unique_ptr<const Codec> MakeOneBitCodec(size_t column);

// A thread for every so many values.
inline constexpr int64_t kCodecGrain = int64_t{1} << 18;

// Of a finite float without its sign: ordered as the magnitudes are.
CREMA_INLINE int32_t MagnitudeBits(float value) { return std::bit_cast<int32_t>(value) & 0x7fffffff; }
inline constexpr int32_t kInfinityBits = 0x7f800000;

// The largest MagnitudeBits; 0 for n = 0. At least kInfinityBits where some value is not finite.
int32_t LargestMagnitudeBits(const float* values, int64_t n);
// The same on all threads.
int32_t LargestMagnitudeBits(std::span<const float> values);

// Appends `bytes` bytes and returns the first of them.
inline std::byte* Extend(Bytes& out, size_t bytes) {
  const size_t before = out.size();
  out.resize(before + bytes);
  return out.data() + before;
}

template <typename T>
CREMA_INLINE T Load(const std::byte* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
CREMA_INLINE void Store(std::byte* to, T value) {
  memcpy(to, &value, sizeof value);
}

// Bytes that hold n things of so many bits.
inline constexpr size_t BytesOfBits(size_t n, size_t bits) { return (n * bits + 7) / 8; }

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_CODECS_CODEC_IMPL_H_
