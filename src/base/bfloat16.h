// bfloat16: the upper half of a float, in two bytes. Arithmetic is done in float.
#ifndef CREMA_BASE_BFLOAT16_H_
#define CREMA_BASE_BFLOAT16_H_

#include <cstdint>
#include <cstring>

#include "base/multiversion.h"

namespace crema {

// Converts without branches, so that loops over it are vectorised.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  CREMA_HOST_DEVICE CREMA_INLINE explicit(false) BFloat16(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    // To the nearest, ties to even. A NaN stays one: adding could carry it into another number.
    const uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    const uint32_t nan = word | 0x400000u;
    bits = static_cast<uint16_t>(((word & 0x7fffffffu) > 0x7f800000u ? nan : rounded) >> 16);
  }
  CREMA_HOST_DEVICE CREMA_INLINE operator float() const {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
  }
};
static_assert(sizeof(BFloat16) == 2);

// Whole runs at once: compilers vectorise neither conversion well inside a loop that does more. Formulas over bf16 run
// strip by strip, on floats that stay in the first cache.
void ToFloats(const BFloat16* from, int64_t n, float* to);
void FromFloats(const float* from, int64_t n, BFloat16* to);
inline constexpr int64_t kBFloat16Strip = 512;

}  // namespace crema

#endif  // CREMA_BASE_BFLOAT16_H_
