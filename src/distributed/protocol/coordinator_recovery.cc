// A coordinator that was started again with a snapshot older than its journal: workers may have what it lost.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "crema/error.h"
#include "distributed/protocol/coordinator.h"

namespace crema {

void Coordinator::Recover(Milliseconds now) {
  changed_ = true;
  // The newest of what anybody has.
  Member* best = nullptr;
  for (auto& [id, member] : members_) {
    if (!member.ready) continue;
    if (member.version.value_or(0) > version_ && (!best || *member.version > *best->version)) best = &member;
  }
  if (donor_ != 0) {
    Member& donor = members_.at(donor_);
    if (!best || *best->version <= donor.version.value_or(0)) return;
    // One with a newer one came meanwhile.
    donor.donation.reset();
    donor_ = 0;
    SendWork(donor);
  }
  // However many are here, one who has the newest may still come.
  const bool newest = best && *best->version == lost_.back().version();
  const bool late = now - recovering_since_ >= options_.recovery;
  if (!newest && !late && !NobodyHasTheLast()) return;
  if (!best) {
    return RollBack(late ? "no worker that has them joined in time" : "all its workers came back without them", now);
  }
  donor_ = best->id;
  best->progressed = now;
  SendWork(*best);
}

// Whether all who were members at the last commit took part in it, and are here with what it was made from: it was on
// the disk, and nobody was told.
bool Coordinator::NobodyHasTheLast() const {
  const JournalRecord::Commit& last = lost_.back();
  uint64_t admitted = 0;
  for (const JournalRecord::Commit::Share& share : last.share()) {
    admitted = std::max(admitted, share.member());
    const bool here = std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
      const Member& member = entry.second;
      return member.ready && member.had_slot == share.slot() && member.version == last.version() - 1;
    });
    if (!here) return false;
  }
  // Members are counted as they come, generations also as they go. Whoever came has taken part, or is gone.
  return admitted > 0 && 2 * admitted == last.generation() + static_cast<uint64_t>(last.share_size());
}

// What it said it has, it does not.
void Coordinator::Disbelieve(Member& member) {
  member.version.reset();
  member.donation.reset();
  donor_ = 0;
  Drop();
}

void Coordinator::TakeRecovered(Member& member, Payload state, Milliseconds now) {
  const auto commit = std::find_if(lost_.begin(), lost_.end(), [&](const JournalRecord::Commit& c) {
    return c.version() == member.donation->version() && c.digest() == member.donation->digest();
  });
  if (commit == lost_.end()) return Disbelieve(member);
  // The worker goes on saying that it has pushed, and this is tried again.
  if (!VoidAfter(commit->version(), commit->iteration(), now)) return;
  for (auto c = lost_.begin(); c != commit + 1; ++c) {
    for (const JournalRecord::Commit::Share& share : c->share()) {
      const Steps steps = StepsOf(share.steps());
      const bool taken = ledger_.TakeThese(steps);
      CREMA_CHECK(taken) << "the journal commits steps twice";
      ledger_.Use(steps);
    }
  }
  const uint64_t was = version_;
  version_ = commit->version();
  iteration_ = commit->iteration();
  carried_ = commit->carried();
  digest_ = commit->digest();
  state_ = state;
  ++state_serial_;  // those that have the snapshot's do not have this one
  math_.Restore(state);
  member.receiver.Release(member.donation->id());
  member.donation.reset();
  Tell(ClusterEvent::Kind::kRecovered, "worker " + member.name + " still had the parameters of round " +
                                           std::to_string(version_) + "; the last snapshot is of round " +
                                           std::to_string(was));
  ClusterEvent& event = events_.back();
  if (version_ != lost_.back().version()) {
    event.text += "; nobody has those of round " + std::to_string(lost_.back().version()) + ", whose steps come again";
  }
  event.version = version_;
  event.state = state_;
  event.round.iteration = iteration_;
  event.next_step = ledger_.next();
  event.carried = carried_;
  event.unused = ledger_.unused();
  GoOn(now);
}

// Says so in the journal; false where it cannot be written now.
bool Coordinator::VoidAfter(uint64_t version, uint64_t iteration, Milliseconds now) {
  if (version == lost_.back().version()) return true;
  if (now < retry_) return false;
  JournalRecord record;
  record.mutable_start()->set_job(options_.job);
  record.mutable_start()->set_epoch(epoch_);
  record.mutable_start()->set_version(version);
  record.mutable_start()->set_iteration(iteration);
  try {
    journal_.Write(record);
  } catch (const EnvironmentError& error) {
    if (retry_ == 0) {
      Tell(ClusterEvent::Kind::kWarning, std::string("training cannot go on yet: ") + error.what());
    }
    retry_ = now + kJournalRetry;
    return false;
  }
  retry_ = 0;
  return true;
}

void Coordinator::RollBack(const std::string& why, Milliseconds now) {
  if (!VoidAfter(version_, iteration_, now)) return;
  Tell(ClusterEvent::Kind::kRolledBack,
       "rounds " + std::to_string(version_ + 1) + " to " + std::to_string(lost_.back().version()) +
           " are lost and will be trained again: the snapshot does not have them, and " + why);
  GoOn(now);
}

void Coordinator::GoOn(Milliseconds now) {
  lost_.clear();
  donor_ = 0;
  phase_ = Phase::kWaiting;
  changed_ = true;
  for (auto& [id, member] : members_) {
    const std::optional<Lease> brought = std::exchange(member.brought, std::nullopt);
    if (member.version != version_) continue;
    member.has_serial = state_serial_;
    member.has_all = true;
    if (brought) TakeUp(member, *brought);
  }
  for (auto& [id, member] : members_) {
    SendState(member, now);
    if (member.ready) SendWork(member);
  }
}

}  // namespace crema
