// Counter-based random numbers: a number is a pure function of (seed, stream, index), so results do not depend on the
// number of threads and a resumed run draws the same ones. Philox4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011).
#ifndef CREMA_BASE_RANDOM_H_
#define CREMA_BASE_RANDOM_H_

#include <array>
#include <cmath>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// One stream of random numbers, e.g. one layer in one pass. Cheap to build; const, so any thread may read any index.
class RandomStream {
 public:
  // key: the run's seed; stream: who draws, e.g. StreamId(layer, pass).
  CREMA_HOST_DEVICE RandomStream(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  CREMA_HOST_DEVICE uint64_t seed() const { return seed_; }
  CREMA_HOST_DEVICE uint64_t stream() const { return stream_; }

  // 128 random bits of counter value `index`.
  CREMA_HOST_DEVICE std::array<uint32_t, 4> Bits(uint64_t index) const {
    uint32_t c0 = static_cast<uint32_t>(index), c1 = static_cast<uint32_t>(index >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream_), c3 = static_cast<uint32_t>(stream_ >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed_), k1 = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return {c0, c1, c2, c3};
  }

  uint64_t Bits64(uint64_t index) const {
    const auto b = Bits(index);
    return b[0] | (uint64_t{b[1]} << 32);
  }

  // In [0, 1), 24 bits.
  CREMA_HOST_DEVICE float Uniform(uint64_t index) const { return static_cast<float>(Bits(index)[0] >> 8) * 0x1p-24f; }

  // Integer in [0, n), n > 0; bias below n / 2^64.
  uint64_t Below(uint64_t index, uint64_t n) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Bits64(index)) * n) >> 64);
  }

  // Standard normal (Box-Muller).
  float Gaussian(uint64_t index) const {
    const auto b = Bits(index);
    const double u = (b[0] + 0.5) * 0x1p-32, v = b[1] * 0x1p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
  }

 private:
  uint64_t seed_, stream_;
};

// Names the stream of one drawer (a layer's index, a data source) in one pass or epoch.
CREMA_HOST_DEVICE inline uint64_t StreamId(uint32_t drawer, uint64_t pass) {
  return (uint64_t{drawer} << 40) ^ (pass & ((uint64_t{1} << 40) - 1));
}

// A pseudo-random permutation of [0, n): element i of epoch `stream`. From n = 257 on without a table: a Feistel
// network over the next even power of two, walking cycles until it falls below n (Black and Rogaway, CT-RSA 2002).
uint64_t Permute(uint64_t seed, uint64_t stream, uint64_t i, uint64_t n);

}  // namespace crema

#endif  // CREMA_BASE_RANDOM_H_
