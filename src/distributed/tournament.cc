#include "distributed/tournament.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/listed.h"
#include "base/random.h"
#include "base/suggest.h"
#include "crema/error.h"
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
  const TestOutputs outputs(test_net);
  const std::vector<OutputValue> values = outputs.ValuesOf(name);
  if (values.size() == 1) return !values[0].is_loss;
  const std::vector<std::string> names = outputs.names();
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    throw UserError(
        where, "distributed: tournament_output \"" + name + "\" of the test net has " + std::to_string(values.size()) +
                   " values, and a tournament compares one; name another output, or take it apart with a Slice layer");
  }
  throw UserError(where, "distributed: the test net has no output \"" + name +
                             "\" that could decide a tournament; it has " + Listed(names) +
                             ": set tournament_output to one of them" + DidYouMean(name, names));
}

}  // namespace crema
