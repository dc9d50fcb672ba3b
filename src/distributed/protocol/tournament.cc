#include "distributed/protocol/tournament.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/random.h"
#include "solver/test_outputs.h"

namespace crema {

std::vector<std::pair<size_t, size_t>> DrawPairs(uint64_t seed, uint64_t version, size_t count) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = Permute(seed, version, i, count);
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i + 1 < count; i += 2) pairs.emplace_back(order[i], order[i + 1]);
  return pairs;
}

Pairing MeetInPairs(uint64_t seed, uint64_t version, std::span<const double> scores, bool higher_wins) {
  CREMA_CHECK(!scores.empty());
  const auto better = [&](size_t a, size_t b) { return higher_wins ? scores[a] > scores[b] : scores[a] < scores[b]; };
  Pairing pairing;
  pairing.winner.resize(scores.size());
  std::iota(pairing.winner.begin(), pairing.winner.end(), size_t{0});
  pairing.met = pairing.winner;
  for (const auto& [a, b] : DrawPairs(seed, version, scores.size())) {
    pairing.met[a] = b;
    pairing.met[b] = a;
    if (better(a, b)) pairing.winner[b] = a;
    if (better(b, a)) pairing.winner[a] = b;
  }
  for (size_t i = 1; i < scores.size(); ++i) {
    if (better(i, pairing.best)) pairing.best = i;
  }
  return pairing;
}

bool HigherWins(const Net& test_net, const std::string& name, const Location& where) {
  const OutputUse use = {.comparer = "a tournament", .field = "tournament_output", .prefix = "distributed: "};
  return !TestOutputs(test_net).OneValueOf(name, where, use).is_loss;
}

}  // namespace crema
