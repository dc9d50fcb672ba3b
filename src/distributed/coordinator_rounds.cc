// Rounds: opened with leases for all, closed by a commit.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "crema/error.h"
#include "distributed/coordinator.h"
#include "distributed/digest.h"

namespace crema {

namespace {

constexpr uint64_t kMostFailuresInARow = 5;

Steps StepsOf(const Lease& lease) { return {lease.steps().first(), lease.steps().count()}; }

}  // namespace

void Coordinator::OnPush(Member& member, const Push& push, Milliseconds now) {
  member.heard = now;
  if (push.state()) {
    if (donor_ != member.id) return Drop();
    member.donation = push;
    return TakeDonation(member, now);
  }
  // One for another version was overtaken by a commit; the Work that is on its way says so.
  if (!open_ || !member.lease || push.lease().serial() != member.lease->serial() || push.version() != version_) return;
  if (member.push && member.push->id() >= push.id()) return;
  if (push.kept() && !round_.among_workers) return;
  member.ForgetPush();
  member.push = push;
  member.progressed = now;
  if (push.kept() && push.failure().empty()) {
    member.offered = changed_ = true;
    member.pushed = now;
    return;
  }
  TakeValues(member, now);
}

void Coordinator::TakeValues(Member& member, Milliseconds now) {
  if (!member.push || member.values || member.failed) return;
  if (!member.push->failure().empty()) {
    member.failed = changed_ = true;
    if (member.push->fatal()) return Fail("worker " + member.name + ": " + member.push->failure(), now);
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + ": " + member.push->failure());
    return;
  }
  const Payload values = member.receiver.Whole(member.push->id());
  if (!values) return;
  if (DigestOf(*values) != member.push->digest()) {
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + " sent values that do not fit their fingerprint");
    member.failed = changed_ = true;
    return;
  }
  Contribution contribution{member.id, member.slot, StepsOf(*member.lease), *member.push, values};
  const std::string wrong = math_.Check(contribution);
  if (!wrong.empty()) {
    member.failed = changed_ = true;
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + ": " + wrong);
    return;
  }
  member.values = std::move(contribution.values);
  member.pushed = now;
  changed_ = true;
}

void Coordinator::Advance(Milliseconds now) {
  // Most messages change nothing that a round waits for, and there are many.
  if (!changed_) return;
  changed_ = false;
  AdvanceRounds(now);
  TendKeeping(now);
}

void Coordinator::AdvanceRounds(Milliseconds now) {
  if (phase_ == Phase::kRecovering) Recover(now);
  while (phase_ == Phase::kWaiting || phase_ == Phase::kTraining) {
    if (exchange_) {
      TendExchange(now);
      if (exchange_) return;
      continue;
    }
    if (open_ ? !MayClose(now) : !MayOpen(now)) return;
    const bool was_open = open_;
    if (open_) {
      Close(now);
    } else {
      Open(now);
    }
    if (open_ == was_open) return;
  }
}

bool Coordinator::MayOpen(Milliseconds now) {
  if (pending_ || end_when_here_) return false;
  if (completed()) {
    BeginEnding("all iterations are done", now);
    return false;
  }
  const int ready = ReadyWorkers();
  if (draining_ && (version_ == 0 || options_.history_every == 0 || ready < options_.min_workers)) {
    BeginEnding(end_reason_, now);
    return false;
  }
  if (held_ || behind_) return false;
  const int wanted =
      started_ || draining_ ? options_.min_workers : std::max(options_.expected_workers, options_.min_workers);
  if (ready >= wanted) {
    waiting_since_.reset();
    told_waiting_ = false;
    round_.among_workers = MayExchange();
    if (!round_.among_workers && !state_) Want(now);
    return round_.among_workers || state_;
  }
  if (!waiting_since_) waiting_since_ = now;
  if (!told_waiting_) {
    told_waiting_ = true;
    Tell(ClusterEvent::Kind::kWaiting,
         "waiting for workers: " + std::to_string(ready) + " of " + std::to_string(wanted) + " are there");
  }
  if (now - *waiting_since_ < options_.join_timeout) return false;
  if (ready >= options_.min_workers) {
    Tell(ClusterEvent::Kind::kWarning, "training begins with " + std::to_string(ready) + " of " +
                                           std::to_string(wanted) + " expected workers: join_timeout_ms is over");
    waiting_since_.reset();
    started_ = true;
    return MayOpen(now);
  }
  Fail("only " + std::to_string(ready) + " of at least " + std::to_string(options_.min_workers) +
           " workers (min_workers) were there for " + std::to_string(options_.join_timeout / 1000) +
           " s (join_timeout_ms)",
       now);
  return false;
}

uint64_t Coordinator::StepsOfRound() const {
  uint64_t steps = std::min<uint64_t>(options_.local_steps, options_.max_iter - iteration_);
  for (const uint64_t stop : options_.stops) {
    if (stop > 0) steps = std::min(steps, stop - iteration_ % stop);
  }
  return steps;
}

std::vector<Coordinator::Member*> Coordinator::BySlot() {
  std::vector<Member*> all;
  for (auto& [id, member] : members_) {
    if (member.ready) all.push_back(&member);
  }
  std::sort(all.begin(), all.end(), [](const Member* a, const Member* b) { return a->slot < b->slot; });
  return all;
}

void Coordinator::Open(Milliseconds now) {
  phase_ = Phase::kTraining;
  started_ = true;
  open_ = true;
  opened_ = now;
  round_.version = version_;
  round_.iteration = iteration_;
  round_.steps = StepsOfRound();
  const uint64_t end = iteration_ + round_.steps;
  round_.with_history =
      options_.history_always ||
      (options_.history_every > 0 && (want_history_ || end % options_.history_every == 0 || end == options_.max_iter));
  if (round_.with_history) want_history_ = false;
  exchange_failures_ = 0;
  for (Member* member : BySlot()) {
    member->ForgetPush();
    member->progressed = now;
    if (!member->lease) GiveLease(*member);
    SendWork(*member);
  }
}

void Coordinator::GiveLease(Member& member) {
  const Steps steps = ledger_.Take(round_.steps);
  Lease lease;
  lease.mutable_steps()->set_first(steps.first);
  lease.mutable_steps()->set_count(steps.count);
  lease.set_serial(++last_lease_);
  member.lease = lease;
  member.late = 0;
}

bool Coordinator::MayClose(Milliseconds now) {
  if (now < retry_) return false;
  int leased = 0, finished = 0, usable = 0;
  // Of those who began with this round: what was late is here at once.
  size_t began = 0;
  std::vector<Milliseconds> times;
  for (auto& [id, member] : members_) {
    if (!member.ready || !member.lease) continue;
    ++leased;
    finished += member.has_result() || member.failed;
    usable += member.has_result();
    if (member.late > 0) continue;
    ++began;
    if (member.has_result()) times.push_back(member.pushed - opened_);
  }
  if (leased < options_.min_workers) {
    // Those who help out have only begun.
    if (!TooFewLeft(leased, now)) waiting_since_.reset();
    return false;
  }
  waiting_since_.reset();
  if (finished == leased) return true;
  if (options_.straggler_factor <= 0 || usable < options_.min_workers || times.empty()) return false;
  const size_t middle = (began - 1) / 2;
  if (times.size() <= middle) return false;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(middle), times.end());
  const double patience = std::max<double>(1, static_cast<double>(times[middle])) * options_.straggler_factor;
  return static_cast<double>(now - opened_) > patience;
}

// Who came since the round began may help out; true where even so they are too few.
bool Coordinator::TooFewLeft(int leased, Milliseconds now) {
  for (Member* member : BySlot()) {
    if (member->lease) continue;
    GiveLease(*member);
    member->progressed = now;
    SendWork(*member);
    ++leased;
  }
  if (leased >= options_.min_workers) return false;
  if (draining_) {
    BeginEnding(end_reason_, now);
  } else if (!waiting_since_) {
    waiting_since_ = now;
    Tell(ClusterEvent::Kind::kWaiting, "waiting for workers: " + std::to_string(leased) + " of at least " +
                                           std::to_string(options_.min_workers) + " (min_workers) are there");
  } else if (now - *waiting_since_ >= options_.join_timeout) {
    Fail("only " + std::to_string(leased) + " of at least " + std::to_string(options_.min_workers) +
             " workers (min_workers) were there for " + std::to_string(options_.join_timeout / 1000) +
             " s (join_timeout_ms)",
         now);
  }
  return true;
}

void Coordinator::Close(Milliseconds now) {
  std::vector<Contribution> contributions;
  std::string failure;
  for (Member* member : BySlot()) {
    if (member->failed) {
      failure = "worker " + member->name + ": " +
                (member->push->failure().empty() ? "its values cannot be used" : member->push->failure());
    }
    if (!member->has_result()) continue;
    contributions.push_back({member->id, member->slot, StepsOf(*member->lease), *member->push, member->values});
  }
  const uint64_t failures = failure.empty() ? 0 : failures_in_a_row_ + 1;
  if (contributions.empty() || (!failure.empty() && !options_.drop_nonfinite) || failures >= kMostFailuresInARow) {
    if (!failure.empty()) return Fail(failure, now);
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
  const Payload state = math_.Reduce(round_, contributions);
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
  ++version_;
  iteration_ += round_.steps;
  whole_ = nullptr;
  ++state_serial_;
  open_ = false;
  ClusterEvent event;
  double weight = 0;
  for (const Contribution& c : contributions) {
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
    member.examples += c.push.examples();
    member.waited += now - member.pushed;
    ++member.rounds;
    member.lease.reset();
    member.late = 0;
  }
  loss_ = event.loss = weight > 0 ? event.loss / weight : 0;
  for (auto& [id, member] : members_) {
    if (member.failed) {
      ReturnLease(member);
    } else if (member.lease) {
      ++member.rounds_late;
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
  event.unused = ledger_.unused();
  if (state_) return Announce(std::move(event), now);
  const bool at_stop = std::any_of(options_.stops.begin(), options_.stops.end(),
                                   [this](uint64_t stop) { return stop > 0 && iteration_ % stop == 0; });
  const bool histories = round_.with_history && !options_.history_always;
  if (at_stop || histories || completed() || draining_ || hold_after_history_ ||
      version_ - kept_.version >= options_.keep_rounds) {
    pending_ = std::move(event);
    return Want(now);
  }
  Announce(std::move(event), now);
}

void Coordinator::Announce(ClusterEvent event, Milliseconds now) {
  event.state = state_;
  const bool at_stop = std::any_of(options_.stops.begin(), options_.stops.end(),
                                   [this](uint64_t stop) { return stop > 0 && iteration_ % stop == 0; });
  const bool has_history = event.round.with_history || options_.history_every == 0;
  if (state_ && ((options_.hold_at_stops && at_stop) || (hold_after_history_ && has_history))) {
    held_ = event.held = true;
    if (has_history) hold_after_history_ = false;
  }
  events_.push_back(std::move(event));
  if (state_ && draining_ && has_history) BeginEnding(end_reason_, now);
}

void Coordinator::Drain(const std::string& reason, Milliseconds now) {
  if (phase_ == Phase::kEnding || draining_) return;
  end_reason_ = reason;
  draining_ = want_history_ = changed_ = true;
  Advance(now);
}

void Coordinator::Stop(const std::string& reason, Milliseconds now) {
  if (phase_ != Phase::kEnding) BeginEnding(reason, now);
}

void Coordinator::Fail(const std::string& why, Milliseconds now) {
  failure_ = why;
  BeginEnding(why, now);
}

void Coordinator::BeginEnding(const std::string& reason, Milliseconds now) {
  end_reason_ = reason;
  exchange_.reset();
  open_ = false;
  for (auto& [id, member] : members_) ReturnLease(member);
  if (!state_) {
    // Nobody has it when the workers are gone.
    end_when_here_ = reason;
    Want(now);
    return;
  }
  CREMA_CHECK(state_);
  phase_ = Phase::kEnding;
  ending_since_ = now;
  for (auto& [id, member] : members_) SendEnd(member);
}

void Coordinator::SendEnd(Member& member) {
  ClusterMessage message;
  message.mutable_end()->set_reason(end_reason_);
  message.mutable_end()->set_completed(completed());
  message.mutable_end()->set_failed(!failure_.empty());
  SendTo(member, Lane::kControl, std::move(message));
}

}  // namespace crema
