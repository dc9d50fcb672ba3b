// Random numbers of a simulation, one after the other.
#ifndef CREMA_TESTS_DISTRIBUTED_SIMULATOR_DICE_H_
#define CREMA_TESTS_DISTRIBUTED_SIMULATOR_DICE_H_

#include <cstdint>

#include "base/random.h"

namespace crema {

class Dice {
 public:
  Dice(uint64_t seed, uint64_t stream) : stream_(seed, stream) {}

  // In [0, n).
  uint64_t Below(uint64_t n) { return stream_.Below(index_++, n); }
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }
  double Uniform() { return stream_.Uniform(index_++); }
  bool Chance(double p) { return Uniform() < p; }

 private:
  RandomStream stream_;
  uint64_t index_ = 0;
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_SIMULATOR_DICE_H_
