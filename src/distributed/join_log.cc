#include "distributed/join_log.h"

#include <utility>

#include "distributed/own_address.h"

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

}  // namespace crema
