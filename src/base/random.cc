#include "base/random.h"

#include <array>
#include <numeric>
#include <utility>

namespace crema {

namespace {

// So few that a table costs less than the bias that a Feistel network over few bits has.
constexpr uint64_t kMostInTable = 256;

// Fisher and Yates'.
uint64_t Shuffled(const RandomStream& random, uint64_t i, uint64_t n) {
  std::array<uint8_t, kMostInTable> order;
  std::iota(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), uint8_t{0});
  for (uint64_t left = n; left > 1; --left) std::swap(order[left - 1], order[random.Below(left, left)]);
  return order[i];
}

}  // namespace

uint64_t Permute(uint64_t seed, uint64_t stream, uint64_t i, uint64_t n) {
  if (n < 2) return i;
  const RandomStream random(seed, stream);
  if (n <= kMostInTable) return Shuffled(random, i, n);
  int half_bits = 1;
  while (half_bits < 32 && (uint64_t{1} << (2 * half_bits)) < n) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  do {
    uint64_t left = i >> half_bits, right = i & mask;
    for (uint64_t round = 0; round < 4; ++round) {
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
