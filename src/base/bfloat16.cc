#include "base/bfloat16.h"

namespace crema {

namespace {

constexpr int64_t kLanes = 16;
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes), aligned(2), may_alias));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

}  // namespace

CREMA_MULTIVERSION void ToFloats(const BFloat16* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Halves halves = *reinterpret_cast<const Halves*>(from + i);
    *reinterpret_cast<Words*>(to + i) = __builtin_convertvector(halves, Words) << 16;
  }
  for (; i < n; ++i) to[i] = from[i];
}

CREMA_MULTIVERSION void FromFloats(const float* from, int64_t n, BFloat16* to) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Words words = *reinterpret_cast<const Words*>(from + i);
    const Words is_nan = (Words)((words & 0x7fffffffu) > 0x7f800000u);
    const Words rounded = words + 0x7fffu + ((words >> 16) & 1u);
    const Words result = (is_nan & (words | 0x400000u)) | (~is_nan & rounded);
    *reinterpret_cast<Halves*>(to + i) = __builtin_convertvector(result >> 16, Halves);
  }
  for (; i < n; ++i) to[i] = from[i];
}

}  // namespace crema
