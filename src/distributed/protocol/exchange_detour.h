// When rounds go through the coordinator although values are to go from worker to worker.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_EXCHANGE_DETOUR_H_
#define CREMA_DISTRIBUTED_PROTOCOL_EXCHANGE_DETOUR_H_

#include <algorithm>
#include <cstdint>

namespace crema {

// After two exchanges of a round that came to nothing: for 10 rounds, and for twice as many each time, at most 1000,
// until an exchange succeeds.
class ExchangeDetour {
 public:
  // Whether the round that follows this version is part of one.
  bool Includes(uint64_t version) const { return version < until_; }
  void BeginRound() { failures_ = 0; }
  void OnSuccess() { next_ = kFirst; }
  // In the round that follows this version. Returns the rounds of the detour that begins with it; 0: none does.
  uint64_t OnFailure(uint64_t version) {
    if (++failures_ < kMostFailures) return 0;
    const uint64_t rounds = next_;
    until_ = version + rounds;
    next_ = std::min(2 * next_, kLongest);
    return rounds;
  }

 private:
  static constexpr uint64_t kMostFailures = 2, kFirst = 10, kLongest = 1000;

  uint64_t failures_ = 0;  // of this round
  uint64_t until_ = 0;     // version
  uint64_t next_ = kFirst;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_EXCHANGE_DETOUR_H_
