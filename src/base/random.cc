#include "base/random.h"

#include <array>
#include <numeric>
#include <utility>

namespace crema {

namespace {

// So few that a table costs less than the bias that a Feistel network over few bits has.
constexpr uint64_t kMostInTable = 256;

// One order, by Fisher and Yates.
class Table {
 public:
  uint64_t At(uint64_t seed, uint64_t stream, uint64_t i, uint64_t n) {
    if (seed != seed_ || stream != stream_ || n != n_) Draw(seed, stream, n);
    return order_[i];
  }

 private:
  void Draw(uint64_t seed, uint64_t stream, uint64_t n) {
    const RandomStream random(seed, stream);
    std::iota(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(n), uint8_t{0});
    for (uint64_t left = n; left > 1; --left) std::swap(order_[left - 1], order_[random.Below(left, left)]);
    seed_ = seed;
    stream_ = stream;
    n_ = n;
  }

  uint64_t seed_ = 0, stream_ = 0, n_ = 0;
  std::array<uint8_t, kMostInTable> order_;
};

}  // namespace

uint64_t Permute(uint64_t seed, uint64_t stream, uint64_t i, uint64_t n) {
  if (n < 2) return i;
  if (n <= kMostInTable) {
    // Elements of one order are mostly asked for one after the other.
    thread_local Table table;
    return table.At(seed, stream, i, n);
  }
  const RandomStream random(seed, stream);
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
