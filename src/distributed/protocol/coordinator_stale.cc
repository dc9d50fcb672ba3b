// Rounds that nobody waits for: each result becomes a commit of its own when it comes, and its worker goes on from
// there.
#include <algorithm>

#include "distributed/protocol/coordinator.h"

namespace crema {

// Leases that the slowest has done.
uint64_t Coordinator::SlowestClock() const {
  std::optional<uint64_t> least;
  for (const auto& [id, member] : members_) {
    if (member.ready) least = std::min(least.value_or(member.clock), member.clock);
  }
  return least.value_or(0);
}

bool Coordinator::AnyLeased() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& entry) { return entry.second.lease.has_value(); });
}

// To all who have none and are not too far ahead.
void Coordinator::LeaseToAll(Milliseconds now) {
  if (draining_ || held_ || behind_ || completed()) return;
  const uint64_t slowest = SlowestClock();
  for (Member* member : BySlot()) {
    if (!member->lease && member->clock - slowest <= options_.staleness) LeaseStale(*member, now);
  }
}

void Coordinator::LeaseStale(Member& member, Milliseconds now) {
  member.lease = NewLease(StepsOfRound(iteration_));
  member.ForgetPush();
  member.progressed = now;
  if (member.idle_since) member.account.OnWaited(now - *member.idle_since);
  member.idle_since.reset();
  member.account.Begin(now);
  Rebase(member);
  SendState(member, now);
  SendWork(member);
}

// Its lease is to be trained from the newest parameters.
void Coordinator::Rebase(Member& member) { member.base = {version_, iteration_, digest_, state_serial_}; }

bool Coordinator::MayCommitStale(Milliseconds now) {
  LeaseToAll(now);
  if (ReadyWorkers() < options_.min_workers) {
    if (!TooFewLeft(ReadyWorkers(), now)) waiting_since_.reset();
    return false;
  }
  waiting_since_.reset();
  if (draining_ && !AnyLeased()) {
    BeginEnding(end_reason_, now);
    return false;
  }
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& entry) { return entry.second.has_result() || entry.second.failed; });
}

// Those that came, in the order of slots, until they reach the next stop: the iteration lands on it, and what is beyond
// belongs to what follows.
std::vector<Contribution> Coordinator::TakeUntilStop() {
  const uint64_t workers = static_cast<uint64_t>(ReadyWorkers());
  uint64_t carried = carried_;
  // So many iterations as before.
  if (carried_of_ > 0) carried = carried * workers / static_cast<uint64_t>(carried_of_);
  const uint64_t left = StepsToStop(iteration_);
  const std::vector<Member*> members = BySlot();
  std::vector<Contribution> contributions;
  for (const Member* member : members) {
    if (!member->has_result() || (!contributions.empty() && carried >= left * workers)) continue;
    const StepRange& steps = member->lease->steps();
    double all = 0;
    for (const Member* other : members) {
      all += static_cast<double>(other->lease ? other->lease->steps().count() : steps.count());
    }
    Contribution& mine = contributions.emplace_back(ContributionOf(*member));
    mine.share = static_cast<double>(steps.count()) / all;
    carried += steps.count();
  }
  round_.version = version_;
  round_.iteration = iteration_;
  round_.steps = std::min(left, carried / workers);
  round_.workers = static_cast<int>(workers);
  round_.with_history = false;
  next_carried_ = carried - round_.steps * workers;
  return contributions;
}

void Coordinator::CloseStale(Milliseconds now) {
  for (Member* member : BySlot()) {
    if (!member->failed) continue;
    if (!options_.drop_nonfinite || ++member->failures >= kMostFailuresInARow) return FailAs(*member, now);
    ReturnLease(*member);
  }
  const std::vector<Contribution> contributions = TakeUntilStop();
  if (contributions.empty()) return LeaseToAll(now);
  const uint64_t before = version_;
  Commit(contributions, now);
  if (version_ != before) carried_of_ = round_.workers;
}

}  // namespace crema
