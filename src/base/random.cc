#include "base/random.h"

namespace crema {

uint64_t Permute(uint64_t seed, uint64_t stream, uint64_t i, uint64_t n) {
  if (n < 2) return i;
  int half_bits = 1;
  while (half_bits < 32 && (uint64_t{1} << (2 * half_bits)) < n) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  const RandomStream random(seed, stream);
  // Over so few bits four rounds prefer some orders to others.
  const uint64_t rounds = n <= 4096 ? 8 : 4;
  do {
    uint64_t left = i >> half_bits, right = i & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t mixed = random.Bits64((round << 32) | right) & mask;
      const uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    i = (left << half_bits) | right;
  } while (i >= n);
  return i;
}

}  // namespace crema
