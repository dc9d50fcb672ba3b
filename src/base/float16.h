// IEEE 754 half precision (binary16) in two bytes: 10 bits of mantissa, up to 65504. Arithmetic is done in float.
#ifndef CREMA_BASE_FLOAT16_H_
#define CREMA_BASE_FLOAT16_H_

#include <cstdint>
#include <cstring>

#include "base/multiversion.h"

namespace crema {

struct Float16 {
  uint16_t bits;

  Float16() = default;
  // To the nearest, ties to even; to an infinity from 65520 on. A NaN stays one.
  CREMA_HOST_DEVICE CREMA_INLINE explicit(false) Float16(float value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    const uint32_t sign = (word >> 16) & 0x8000u;
    uint32_t rest = word & 0x7fffffffu;
    if (rest > 0x7f800000u) {
      rest = 0x7e00u | ((rest >> 13) & 0x3ffu);
    } else if (rest >= 0x477ff000u) {
      rest = 0x7c00u;
    } else if (rest >= 0x38800000u) {
      rest = (rest + 0xfffu + ((rest >> 13) & 1u) - (112u << 23)) >> 13;
    } else {  // below 2^-14; the last bit of a float between 1/2 and 1 is 2^-24, as that of such a half
      float magnitude;
      memcpy(&magnitude, &rest, sizeof magnitude);
      magnitude += 0.5f;
      memcpy(&rest, &magnitude, sizeof rest);
      rest -= 0x3f000000u;
    }
    bits = static_cast<uint16_t>(sign | rest);
#endif
  }
  CREMA_HOST_DEVICE CREMA_INLINE operator float() const {
    float value;
#if defined(__CUDA_ARCH__)
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
#else
    const uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest < 0x400u) {
      const float magnitude = static_cast<float>(rest) * 0x1p-24f;
      return sign ? -magnitude : magnitude;
    }
    const uint32_t word = sign | (rest < 0x7c00u ? (rest << 13) + (112u << 23) : 0x7f800000u | ((rest & 0x3ffu) << 13));
    memcpy(&value, &word, sizeof value);
#endif
    return value;
  }
};
static_assert(sizeof(Float16) == 2);

}  // namespace crema

#endif  // CREMA_BASE_FLOAT16_H_
