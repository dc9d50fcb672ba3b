// Tournaments (LTFB; Jacobs et al., "Towards scalable parallel training of deep neural networks", MLHPC 2017): workers
// learn apart, and after each round they meet in pairs, of which both go on with what does better.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_TOURNAMENT_H_
#define CREMA_DISTRIBUTED_PROTOCOL_TOURNAMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "crema/error.h"
#include "crema/net.h"

namespace crema {

// Who meets whom of `count` after round `version`: drawn from seed and version alone. With an odd number one meets
// nobody.
std::vector<std::pair<size_t, size_t>> DrawPairs(uint64_t seed, uint64_t version, size_t count);

struct Pairing {
  size_t best = 0;             // of all; of equal ones the first
  std::vector<size_t> met;     // by participant: whom; itself where that is nobody
  std::vector<size_t> winner;  // by participant: whose parameters it goes on with; of equal ones each keeps its own

  bool has_met(size_t one) const { return met[one] != one; }
  // Whether the other one goes on with its parameters.
  bool has_won(size_t one) const { return has_met(one) && winner[met[one]] == one; }
};

// `scores` must be finite and are at least one.
Pairing MeetInPairs(uint64_t seed, uint64_t version, std::span<const double> scores, bool higher_wins);

// Whether a higher value of this output of the test net is the better one: not of losses. Throws UserError where the
// net has no such output, or not one number.
bool HigherWins(const Net& test_net, const std::string& output, const Location& where);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_TOURNAMENT_H_
