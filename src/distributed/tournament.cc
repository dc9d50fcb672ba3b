#include "distributed/tournament.h"

#include <numeric>
#include <string>

#include "base/check.h"
#include "base/random.h"
#include "base/suggest.h"
#include "crema/error.h"

namespace crema {

std::vector<std::pair<size_t, size_t>> DrawPairs(uint64_t seed, uint64_t version, size_t count) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = Permute(seed, version, i, count);
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i + 1 < count; i += 2) pairs.emplace_back(order[i], order[i + 1]);
  return pairs;
}

Meeting MeetInPairs(uint64_t seed, uint64_t version, std::span<const double> scores, bool higher_wins) {
  CREMA_CHECK(!scores.empty());
  const auto better = [&](size_t a, size_t b) { return higher_wins ? scores[a] > scores[b] : scores[a] < scores[b]; };
  Meeting meeting;
  meeting.winner.resize(scores.size());
  std::iota(meeting.winner.begin(), meeting.winner.end(), size_t{0});
  meeting.met = meeting.winner;
  for (const auto& [a, b] : DrawPairs(seed, version, scores.size())) {
    meeting.met[a] = b;
    meeting.met[b] = a;
    if (better(a, b)) meeting.winner[b] = a;
    if (better(b, a)) meeting.winner[a] = b;
  }
  for (size_t i = 1; i < scores.size(); ++i) {
    if (better(i, meeting.best)) meeting.best = i;
  }
  return meeting;
}

bool HigherWins(const Net& test_net, const std::string& name, const Location& where) {
  std::vector<std::string> names;
  std::string known;
  for (const NetOutput& output : test_net.outputs()) {
    names.push_back(output.name);
    known += (known.empty() ? "" : ", ") + output.name;
    if (output.name != name) continue;
    if (output.value.count() == 1) return output.loss_weight == 0;
    throw UserError(where, "distributed: tournament_output \"" + name + "\" of the test net has " +
                               std::to_string(output.value.count()) +
                               " values, and a tournament compares one; name another output");
  }
  throw UserError(where, "distributed: the test net has no output \"" + name + "\"" + DidYouMean(name, names) +
                             " that could decide a tournament; it has " + known +
                             ": set tournament_output to one of them");
}

}  // namespace crema
