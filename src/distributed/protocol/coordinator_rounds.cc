// Rounds: opened with leases for all, and what comes in meanwhile.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/printable.h"
#include "distributed/journal/digest.h"
#include "distributed/protocol/coordinator.h"

namespace crema {

void Coordinator::OnPush(Member& member, const Push& push, Milliseconds now) {
  member.heard = now;
  if (push.state()) {
    if (donor_ != member.id) return Drop();
    member.donation = push;
    return TakeDonation(member, now);
  }
  // One for another version was overtaken by a commit; the Work that is on its way says so.
  const bool expected = options_.stale ? member.lease && push.version() == member.base.version
                                       : open_ && member.lease && push.version() == version_;
  if (!expected || push.lease().serial() != member.lease->serial()) return;
  const bool keeps_promise = member.has_promised() && push.id() == member.push->id() && !push.promised();
  if (member.push && member.push->id() >= push.id() && !keeps_promise) return;
  if (push.kept() && !round_.among_workers) return;
  if (push.promised() && !push.kept()) return Drop();
  member.ForgetPush();
  member.push = push;
  member.progressed = now;
  if (push.promised()) {
    changed_ = true;
    return;
  }
  if (push.failure().empty()) member.account.OnTrained(push.seconds(), now);
  if (push.kept() && push.failure().empty()) {
    member.offered = changed_ = true;
    member.pushed = now;
    // Before that others had perhaps nothing to wait for but the computation.
    if (exchange_) exchange_->progressed = now;
    return;
  }
  if (!push.failure().empty()) LeaveExchange(member);
  TakeValues(member, now);
}

void Coordinator::TakeValues(Member& member, Milliseconds now) {
  if (!member.push || member.values || member.failed) return;
  if (!member.push->failure().empty()) {
    member.failed = changed_ = true;
    if (member.push->fatal()) return FailAs(member, now);
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + ": " + OneLine(member.push->failure()));
    return;
  }
  const Payload values = member.receiver.Whole(member.push->id());
  if (!values) return;
  if (DigestOf(*values) != member.push->digest()) {
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + " sent values that do not fit their fingerprint");
    member.failed = changed_ = true;
    return;
  }
  Contribution contribution{member.id, member.slot, StepsOf(member.lease->steps()), *member.push, values};
  std::string wrong = math_.Check(contribution);
  if (wrong.empty() && options_.tournament && !std::isfinite(member.push->score())) wrong = "its score is not finite";
  if (!wrong.empty()) {
    member.failed = changed_ = true;
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + ": " + wrong);
    return;
  }
  member.values = std::move(contribution.values);
  member.pushed = now;
  member.account.OnDelivered(now);
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
  const bool nothing_comes = options_.stale ? !AnyLeased() : version_ == 0 || options_.history_every == 0;
  if (draining_ && (nothing_comes || ready < options_.min_workers)) {
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
    // At the start there is nobody, as it should be.
    const std::string rest = "; for at most " + std::to_string(options_.join_timeout / 1000) + " s (join_timeout_ms)" +
                             (wanted > options_.min_workers
                                  ? ", then training begins with " + std::to_string(options_.min_workers) + " or more"
                                  : "");
    Tell(started_ ? ClusterEvent::Kind::kWarning : ClusterEvent::Kind::kNotice,
         "waiting for workers: " + std::to_string(ready) + " of " + std::to_string(wanted) + " are there" + rest);
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

uint64_t Coordinator::StepsOfRound(uint64_t iteration) const {
  return std::min<uint64_t>(options_.local_steps, StepsToStop(iteration));
}

uint64_t Coordinator::StepsToStop(uint64_t iteration) const {
  uint64_t steps = options_.max_iter - iteration;
  for (const uint64_t stop : options_.stops) {
    if (stop > 0) steps = std::min(steps, stop - iteration % stop);
  }
  return steps;
}

bool Coordinator::IsStop(uint64_t iteration) const {
  return std::any_of(options_.stops.begin(), options_.stops.end(),
                     [iteration](uint64_t stop) { return stop > 0 && iteration % stop == 0; });
}

// Whether a round that ends there pushes histories.
bool Coordinator::HasHistory(uint64_t end) const {
  return options_.history_always ||
         (options_.history_every > 0 && (end % options_.history_every == 0 || end == options_.max_iter));
}

// Whether workers may go on beyond a round that ends there. What follows a stop or histories begins from the average,
// so that it is the same after a restart; and whoever pushes histories has to know it when the steps begin.
bool Coordinator::MayTrainAhead(uint64_t end) const {
  if (!options_.train_ahead || end >= options_.max_iter || IsStop(end) || round_.with_history || want_history_ ||
      draining_) {
    return false;
  }
  return !HasHistory(end + StepsOfRound(end));
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
  opened_ = patient_since_ = now;
  if (options_.stale) return LeaseToAll(now);
  round_.version = version_;
  round_.iteration = iteration_;
  round_.steps = StepsOfRound(iteration_);
  const uint64_t end = iteration_ + round_.steps;
  const std::vector<Member*> members = BySlot();
  const bool begun =
      options_.train_ahead && std::any_of(members.begin(), members.end(), [](Member* m) { return m->lease; });
  round_.with_history = HasHistory(end) || (want_history_ && options_.history_every > 0 && !begun);
  if (round_.with_history) want_history_ = false;
  detour_.BeginRound();
  for (Member* member : members) {
    member->ForgetPush();
    member->progressed = now;
    member->account.Begin(now);
    if (!member->lease) GiveLease(*member);
  }
  const bool ahead = MayTrainAhead(end);
  for (Member* member : members) {
    if (ahead && !member->ahead) member->ahead = NewLease(StepsOfRound(end));
    SendWork(*member);
  }
}

Lease Coordinator::NewLease(uint64_t count) {
  const Steps steps = ledger_.Take(count);
  Lease lease;
  lease.mutable_steps()->set_first(steps.first);
  lease.mutable_steps()->set_count(steps.count);
  lease.set_serial(++last_lease_);
  return lease;
}

void Coordinator::GiveLease(Member& member) {
  member.lease = NewLease(round_.steps);
  member.late = 0;
}

bool Coordinator::MayClose(Milliseconds now) {
  if (now < retry_) return false;
  if (options_.stale) return MayCommitStale(now);
  int leased = 0, finished = 0, usable = 0;
  // Who connected anew goes on with its work, though it has not said yet that it is ready.
  bool awaited = false;
  // Of those who began with this round: what was late is here at once.
  size_t began = 0;
  std::vector<Milliseconds> times;
  for (auto& [id, member] : members_) {
    if (!member.lease) continue;
    if (!member.ready) {
      awaited = true;
      continue;
    }
    ++leased;
    finished += member.has_result() || member.has_promised() || member.failed;
    usable += member.has_result();
    if (member.late > 0) continue;
    ++began;
    if (member.has_result()) times.push_back(member.pushed - patient_since_);
  }
  if (leased < options_.min_workers) {
    // Those who help out have only begun.
    if (!TooFewLeft(leased, now)) waiting_since_.reset();
    return false;
  }
  waiting_since_.reset();
  if (finished == leased && !awaited) return true;
  if (options_.straggler_factor <= 0 || usable < options_.min_workers || times.empty()) return false;
  const size_t middle = (began - 1) / 2;
  if (times.size() <= middle) return false;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(middle), times.end());
  const double patience = std::max<double>(1, static_cast<double>(times[middle])) * options_.straggler_factor;
  return static_cast<double>(now - patient_since_) > patience;
}

// Who came since the round began may help out; true where even so they are too few.
bool Coordinator::TooFewLeft(int leased, Milliseconds now) {
  for (Member* member : BySlot()) {
    if (member->lease || options_.stale) continue;
    GiveLease(*member);
    member->progressed = now;
    member->account.Begin(now);
    SendWork(*member);
    ++leased;
  }
  if (leased >= options_.min_workers) return false;
  if (draining_) {
    BeginEnding(end_reason_, now);
  } else if (!waiting_since_) {
    waiting_since_ = now;
    Tell(ClusterEvent::Kind::kWarning, "waiting for workers: " + std::to_string(leased) + " of at least " +
                                           std::to_string(options_.min_workers) + " (min_workers) are there");
  } else if (now - *waiting_since_ >= options_.join_timeout) {
    Fail("only " + std::to_string(leased) + " of at least " + std::to_string(options_.min_workers) +
             " workers (min_workers) were there for " + std::to_string(options_.join_timeout / 1000) +
             " s (join_timeout_ms)",
         now);
  }
  return true;
}

void Coordinator::Drain(const std::string& reason, Milliseconds now) {
  if (phase_ == Phase::kEnding || draining_) return;
  end_reason_ = reason;
  draining_ = want_history_ = changed_ = true;
  Advance(now);
}

void Coordinator::Stop(const std::string& reason, Milliseconds now) {
  if (phase_ != Phase::kEnding) return BeginEnding(reason, now);
  hurried_ = true;
}

void Coordinator::Release(Milliseconds now) {
  held_ = false;
  changed_ = true;
  Advance(now);
}

void Coordinator::Fail(const std::string& why, Milliseconds now, Failure kind) {
  failure_ = why;
  failure_kind_ = kind;
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
  message.mutable_end()->set_hopeless(hopeless());
  SendTo(member, Lane::kControl, std::move(message));
}

}  // namespace crema
