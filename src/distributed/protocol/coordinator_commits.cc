// How rounds end: what workers made becomes the next parameters.
#include <algorithm>
#include <set>
#include <utility>

#include "crema/error.h"
#include "distributed/journal/digest.h"
#include "distributed/protocol/coordinator.h"

namespace crema {

Contribution Coordinator::ContributionOf(const Member& member) {
  return {member.id, member.slot, StepsOf(member.lease->steps()), *member.push, member.values};
}

// What a worker says itself, of a loss or of a record, would come again.
void Coordinator::FailAs(const Member& member, Milliseconds now) {
  const std::string& said = member.push->failure();
  const Failure of_worker = member.push->fatal() ? Failure::kMistake : Failure::kDiverged;
  Fail("worker " + member.name + ": " + (said.empty() ? "its values cannot be used" : said), now,
       said.empty() ? Failure::kEnvironment : of_worker);
}

void Coordinator::Close(Milliseconds now) {
  if (options_.stale) return CloseStale(now);
  std::vector<Contribution> contributions;
  const Member* failed = nullptr;
  for (Member* member : BySlot()) {
    if (member->failed) failed = member;
    if (member->has_result() || member->has_promised()) contributions.push_back(ContributionOf(*member));
  }
  const uint64_t failures = failed ? failures_in_a_row_ + 1 : 0;
  if (failed && (contributions.empty() || !options_.drop_nonfinite || failures >= kMostFailuresInARow)) {
    return FailAs(*failed, now);
  }
  if (contributions.empty()) return;
  const uint64_t before = version_;
  if (round_.among_workers) {
    if (wanted_) return;  // else the state that is on its way would be an old one
    return BeginExchange(contributions, failures, now);
  }
  if (!state_) return Want(now);
  Commit(contributions, now);
  // A full disk is no further failure of the workers.
  if (version_ != before) failures_in_a_row_ = failures;
}

void Coordinator::Commit(const std::vector<Contribution>& contributions, Milliseconds now) {
  if (options_.tournament) Meet(contributions);
  const Payload state =
      options_.tournament ? math_.Reduce(round_, {contributions[pairing_.best]}) : math_.Reduce(round_, contributions);
  if (!Record(contributions, DigestOf(*state), now)) return;
  math_.Accept();
  state_ = state;
  difference_ = math_.Difference();
  Follow(contributions, now);
}

// In the journal; false where it cannot be written now.
bool Coordinator::Record(const std::vector<Contribution>& contributions, uint64_t digest, Milliseconds now) {
  if (now < retry_) return false;
  JournalRecord record;
  JournalRecord::Commit& commit = *record.mutable_commit();
  commit.set_version(version_ + 1);
  commit.set_iteration(iteration_ + round_.steps);
  commit.set_digest(digest);
  commit.set_generation(generation_);
  if (options_.stale) commit.set_carried(next_carried_);
  for (const Contribution& c : contributions) {
    JournalRecord::Commit::Share& share = *commit.add_share();
    share.set_member(c.member);
    share.set_slot(c.slot);
    share.mutable_steps()->set_first(c.steps.first);
    share.mutable_steps()->set_count(c.steps.count);
    share.set_examples(c.push.examples());
  }
  try {
    journal_.Write(record);
  } catch (const EnvironmentError& error) {
    if (retry_ == 0) {
      Tell(ClusterEvent::Kind::kWarning,
           std::string("the round cannot be committed, and is tried again: ") + error.what());
    }
    retry_ = now + kJournalRetry;
    return false;
  }
  retry_ = 0;
  if (round_.among_workers) {
    Keep();
    kept_.since.push_back(commit);
  }
  digest_ = digest;
  return true;
}

// What a commit brings about.
void Coordinator::Follow(const std::vector<Contribution>& contributions, Milliseconds now) {
  ClusterEvent event;
  event.by_worker = AccountRound(contributions, now);
  event.opened = opened_;
  event.closed = now;
  ++version_;
  iteration_ += round_.steps;
  carried_ = next_carried_;
  if (round_.with_history) center_ = version_;
  whole_ = nullptr;
  ++state_serial_;
  open_ = false;
  double weight = 0;
  std::set<uint64_t> took_part;
  for (const Contribution& c : contributions) {
    took_part.insert(c.member);
    const double examples = static_cast<double>(c.push.examples());
    event.examples += c.push.examples();
    event.loss += c.push.loss() * examples;
    if (event.outputs.empty()) event.outputs.assign(static_cast<size_t>(c.push.output_size()), 0.0f);
    for (int i = 0; i < std::min<int>(c.push.output_size(), static_cast<int>(event.outputs.size())); ++i) {
      event.outputs[i] += static_cast<float>(c.push.output(i) / static_cast<double>(contributions.size()));
    }
    weight += examples;
    Member& member = members_.at(c.member);
    ledger_.Use(c.steps);
    if (member.values) {
      member.receiver.Release(c.push.id());
    } else {
      // It made the state itself.
      member.has_serial = state_serial_;
      member.has_all = true;
      member.delivered = now;
    }
    member.committed_push = c.push.id();
    member.lease = std::exchange(member.ahead, std::nullopt);
    member.late = 0;
    ++member.clock;
    member.failures = 0;
    member.idle_since = now;
  }
  loss_ = event.loss = weight > 0 ? event.loss / weight : 0;
  if (options_.tournament) GoOnApart(contributions, &event, now);
  for (auto& [id, member] : members_) {
    if (options_.stale) {
      // Others go on with what they have.
      if (took_part.count(id) == 0) continue;
    } else if (member.failed) {
      ReturnLease(member);
    } else if (member.lease && took_part.count(id) == 0) {
      if (++member.late > options_.staleness) ReturnLease(member);
    }
    member.ForgetPush();
    SendState(member, now);
    if (member.ready) SendWork(member);
  }
  event.kind = ClusterEvent::Kind::kCommitted;
  event.workers = static_cast<int>(contributions.size());
  event.round = round_;
  event.version = version_;
  event.next_step = ledger_.next();
  event.carried = carried_;
  event.unused = ledger_.unused();
  if (state_) return Announce(std::move(event), now);
  const bool histories = round_.with_history && !options_.history_always;
  if (IsStop(iteration_) || histories || completed() || draining_ || hold_after_history_ ||
      version_ - kept_.version >= options_.keep_rounds) {
    pending_ = std::move(event);
    return Want(now);
  }
  Announce(std::move(event), now);
}

void Coordinator::Announce(ClusterEvent event, Milliseconds now) {
  event.state = state_;
  const bool at_stop = IsStop(iteration_);
  const bool has_history = event.round.with_history || options_.history_every == 0;
  if (state_ && ((options_.hold_at_stops && at_stop) || (hold_after_history_ && has_history))) {
    held_ = event.held = true;
    if (has_history) hold_after_history_ = false;
  }
  events_.push_back(std::move(event));
  if (state_ && draining_ && has_history && !options_.stale) BeginEnding(end_reason_, now);
}

}  // namespace crema
