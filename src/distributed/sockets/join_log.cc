#include "distributed/sockets/join_log.h"

#include <utility>
#include <vector>

#include "base/listed.h"
#include "distributed/sockets/own_address.h"

namespace crema {

void JoinLog::Tell(Worker::Phase phase, std::string no_place, bool has_trained, bool has_keys) {
  constexpr Milliseconds kEvery = 10'000;
  if (phase == Worker::Phase::kEnded) return;
  const Milliseconds now = Now();
  const bool joining = phase == Worker::Phase::kJoining;
  if (joining && !joining_) {
    Say("The coordinator is lost; looking for it");
    told_ = now;
    no_place.clear();  // is said the next time
  } else if (!joining && joining_ && has_trained) {
    Say("Joined again");
  } else if (!no_place.empty()) {
    if (no_place != no_place_) Say("Waiting for a place at " + endpoint_ + ": " + no_place);
    told_ = now;
  } else if (joining && now - told_ >= kEvery) {
    const std::string problem = HostProblem(endpoint_);
    const std::string keys = has_keys ? "does it know this worker's key, and is --server_key its own?"
                                      : "does it want keys, of which this worker has none?";
    Say("No answer from " + endpoint_ +
        " yet: " + (problem.empty() ? "is the coordinator running, is the address right, and " + keys : problem));
    told_ = now;
  }
  joining_ = joining;
  no_place_ = std::move(no_place);
}

void JoinLog::Tell(const PeerLosses& losses) {
  const auto tell = [this](uint64_t now, uint64_t& told, const char* line) {
    if (now > 0 && told == 0) Say(line);
    told = now;
  };
  tell(losses.malformed, told_losses_.malformed,
       "A message from another worker cannot be read and is dropped: do all run the same crema, and does nothing else "
       "connect to this worker's port?");
  tell(losses.bad_peers, told_losses_.bad_peers,
       "The coordinator names another worker at an address to which this one cannot connect, so nothing is sent there: "
       "look at --peer_address and the keys of the others");
  tell(losses.unsent, told_losses_.unsent,
       "A message to another worker could not be sent, since that is gone or takes none; what is still wanted is sent "
       "again");
  tell(losses.early, told_losses_.early,
       "More workers asked about a round that this one does not know yet than it remembers; they ask again");
}

void JoinLog::Summarize(const PeerLosses& losses) const {
  std::vector<std::string> parts;
  const auto add = [&parts](uint64_t count, const std::string& one, const std::string& several) {
    if (count > 0) parts.push_back(std::to_string(count) + (count == 1 ? one : several));
  };
  add(losses.malformed, " message that cannot be read", " messages that cannot be read");
  add(losses.unsent, " message that could not be sent", " messages that could not be sent");
  add(losses.bad_peers, " address that is of no use", " addresses that are of no use");
  add(losses.early, " question that came too early and was dropped", " questions that came too early and were dropped");
  if (!parts.empty()) Say("Between this worker and others: " + Listed(parts, {.last = " and "}));
}

}  // namespace crema
