// A coordinator that was started again with a snapshot older than its journal: workers may have what it lost.
#include <algorithm>

#include "base/check.h"
#include "crema/error.h"
#include "distributed/coordinator.h"

namespace crema {

void Coordinator::Recover(Milliseconds now) {
  if (donor_ != 0) return;
  // The newest of what anybody has.
  Member* best = nullptr;
  int known = 0;
  for (auto& [id, member] : members_) {
    if (!member.ready) continue;
    ++known;
    if (member.version.value_or(0) > version_ && (!best || *member.version > *best->version)) best = &member;
  }
  const bool newest = best && best->version == lost_.back().version();
  const bool all_there = known >= std::max(options_.expected_workers, options_.min_workers);
  if (!newest && !all_there && now - recovering_since_ < options_.recovery) return;
  if (!best) return RollBack(all_there ? "no worker has them" : "no worker that has them joined in time", now);
  donor_ = best->id;
  SendWork(*best);
}

void Coordinator::TakeRecovered(Member& member, Payload state, Milliseconds now) {
  const auto commit = std::find_if(lost_.begin(), lost_.end(), [&](const JournalRecord::Commit& c) {
    return c.version() == member.push->version() && c.digest() == member.push->digest();
  });
  if (commit == lost_.end()) {
    member.version.reset();
    member.push.reset();
    donor_ = 0;
    return Drop();
  }
  for (auto c = lost_.begin(); c != commit + 1; ++c) {
    for (const JournalRecord::Commit::Share& share : c->share()) {
      const Steps steps{share.steps().first(), share.steps().count()};
      const bool taken = ledger_.TakeThese(steps);
      CREMA_CHECK(taken) << "the journal commits steps twice";
      ledger_.Use(steps);
    }
  }
  const uint64_t was = version_;
  version_ = commit->version();
  iteration_ = commit->iteration();
  digest_ = commit->digest();
  state_ = state;
  math_.Restore(state);
  member.push.reset();
  Tell(ClusterEvent::Kind::kRecovered, "worker " + member.name + " still had the parameters of round " +
                                           std::to_string(version_) + "; the last snapshot is of round " +
                                           std::to_string(was));
  RollBack("", now);
}

// What lies behind version_ is void.
void Coordinator::RollBack(const std::string& why, Milliseconds now) {
  JournalRecord record;
  record.mutable_start()->set_job(options_.job);
  record.mutable_start()->set_epoch(epoch_);
  record.mutable_start()->set_version(version_);
  record.mutable_start()->set_iteration(iteration_);
  try {
    journal_.Write(record);
  } catch (const EnvironmentError& error) {
    return Fail(error.what(), now);
  }
  if (!why.empty()) {
    Tell(ClusterEvent::Kind::kRolledBack,
         "rounds " + std::to_string(version_ + 1) + " to " + std::to_string(lost_.back().version()) +
             " are lost and will be trained again: the snapshot does not have them, and " + why);
  }
  lost_.clear();
  donor_ = 0;
  phase_ = Phase::kWaiting;
  for (auto& [id, member] : members_) {
    if (member.version != version_) SendState(member, now);
    if (member.ready) SendWork(member);
  }
}

}  // namespace crema
