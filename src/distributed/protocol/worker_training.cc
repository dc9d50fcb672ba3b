// What a worker is to do, and what becomes of what it did.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "distributed/journal/digest.h"
#include "distributed/protocol/worker.h"

namespace crema {

namespace {

// Whether there is something to train, which this program's numbers can hold.
bool IsSound(const Lease& lease, uint64_t iteration) {
  const StepRange& steps = lease.steps();
  constexpr uint64_t kMostIterations = std::numeric_limits<int>::max();
  return steps.count() > 0 && steps.count() <= kMostIterations && iteration <= kMostIterations - steps.count() &&
         steps.first() <= std::numeric_limits<uint64_t>::max() - steps.count();
}

}  // namespace

void Worker::OnWork(const Work& work, Milliseconds now) {
  for (const Lease* lease : {work.has_lease() ? &work.lease() : nullptr, work.has_ahead() ? &work.ahead() : nullptr}) {
    if (!lease || IsSound(*lease, work.iteration())) continue;
    // What it wants cannot be done, which would otherwise be told as a failure of the training.
    Leave("the coordinator asks for " + std::to_string(lease->steps().count()) + " steps from " +
              std::to_string(lease->steps().first()) + " on, at iteration " + std::to_string(work.iteration()) +
              ", which cannot be trained; run the same crema on all machines",
          now);
    failed_ = true;
    return;
  }
  work_ = work;
  slot_ = work.slot();
  if (!work.has_lease() || !lease_ || work.lease().serial() != lease_->serial()) {
    if (lease_) KeepOwn();
    lease_ = work.has_lease() ? std::optional<Lease>(work.lease()) : std::nullopt;
    // What was done meanwhile is of use only where it continues what was committed.
    const bool next = lease_ && ahead_ && lease_->serial() == ahead_->serial();
    const bool begun = ahead_result_ || (next && training_ && task_.lease == lease_->serial());
    beginning_ = next && !begun ? std::exchange(result_, std::nullopt) : std::nullopt;
    result_ = next ? std::exchange(ahead_result_, std::nullopt) : std::nullopt;
    Settle();
    push_.reset();
    if (!work.wanted()) sender_.Cancel();
  }
  if (!work.has_ahead() || !ahead_ || work.ahead().serial() != ahead_->serial()) {
    ahead_ = work.has_ahead() ? std::optional<Lease>(work.ahead()) : std::nullopt;
    ahead_result_.reset();
  }
  if (!work.wanted()) donation_.reset();
}

void Worker::StartDonation(Milliseconds now) {
  // What was under way is sent again, after it.
  if (sender_.active() && push_ && !push_->kept()) push_.reset();
  Push push;
  push.set_id(++last_push_);
  push.set_state(true);
  push.set_version(version_);
  push.set_digest(digest_);
  donation_ = push;
  sender_.Start(push.id(), state_, now);
  SendPush();
  Poll(now);
}

// The lease of the last push is done with.
void Worker::Settle() {
  if (!push_) return;
  const bool committed = work_->committed_push() == push_->id();
  math_.Settle(committed ? WorkerMath::Outcome::kCommitted : WorkerMath::Outcome::kDropped);
}

// Before the lease is forgotten. Of what did not count nothing is kept.
void Worker::KeepOwn() {
  const bool committed = push_ && work_->committed_push() == push_->id();
  own_ = committed && result_ && result_->values ? math_.Own(result_->values, result_->from) : nullptr;
  if (own_) own_version_ = push_->version() + 1;
  pushed_ = committed && work_->keep_own() && result_ ? result_->values : nullptr;
}

void Worker::TakeState() {
  if (!work_ || (version_ == work_->version() && digest_ == work_->digest()) || work_->digest() == 0) return;
  if (exchange_ && exchange_->state && exchange_->digest == work_->digest() && version_ + 1 == work_->version()) {
    version_ = work_->version();
    digest_ = work_->digest();
    state_ = exchange_->state;
    return;
  }
  if (pushed_ && work_->keep_own() && version_ + 1 == work_->version() && DigestOf(*pushed_) == work_->digest()) {
    version_ = work_->version();
    digest_ = work_->digest();
    state_ = std::exchange(pushed_, nullptr);
    return;
  }
  const Payload whole = receiver_.Whole(work_->state());
  if (!whole || (work_->form() == Work::DIFFERENCE && (!state_ || version_ + 1 != work_->version()))) return;
  const Payload state = math_.Decode(work_->form(), whole, state_);
  if (!state || DigestOf(*state) != work_->digest()) return;
  math_.ExpectState(state);
  receiver_.Release(work_->state());
  version_ = work_->version();
  digest_ = work_->digest();
  state_ = state;
}

// That there are values of it, or will be, for the version and the way that the coordinator wants.
bool Worker::HasAnnounced(uint64_t lease) const {
  return push_ && push_->version() == version_ && push_->lease().serial() == lease &&
         push_->kept() == work_->keep_values();
}

// Whether what is being made is for the open round, and of the parameters that it begins with.
bool Worker::MayPromise() const {
  return making_ && training_ && lease_ && task_.lease == lease_->serial() && task_.version == version_ &&
         work_->keep_values() && work_->has_lease() && work_->has_iteration() && work_->digest() == digest_ &&
         work_->version() == version_ && !task_.with_history && !work_->with_history();
}

void Worker::Advance(Milliseconds now) {
  if (phase_ != Phase::kMember || !work_) return;
  TakeState();
  const bool donated = donation_ && donation_->version() == version_;
  if (work_->wanted() && !donated && state_ && version_ == work_->version()) StartDonation(now);
  const bool donating = donation_ && sender_.active() && sender_.id() == donation_->id();
  // Between rounds nobody waits for it, and it is not known which way it will take.
  if (result_ && lease_ && result_->lease == lease_->serial() && work_->has_lease() && work_->has_iteration() &&
      work_->digest() == digest_ && version_ == work_->version() &&
      (!HasAnnounced(result_->lease) || push_->promised()) && (!donating || work_->keep_values())) {
    StartPush(now);
  }
  if (MayPromise() && !HasAnnounced(task_.lease)) Promise(now);
  TendExchange(now);
}

void Worker::Promise(Milliseconds now) {
  Push push;
  push.set_id(++last_push_);
  *push.mutable_lease() = *lease_;
  push.set_version(version_);
  push.set_trained_from(task_.version);
  push.set_examples(making_->examples);
  push.set_kept(true);
  push.set_promised(true);
  push_ = push;
  SendPush();
  Poll(now);
}

void Worker::StartPush(Milliseconds now) {
  if (result_->version != version_ && result_->failure.empty()) {
    result_->values = math_.Rebase(result_->values, result_->with_history, result_->from, state_);
  }
  Push push;
  const bool promised = HasAnnounced(result_->lease) && push_->promised();
  push.set_id(promised ? push_->id() : ++last_push_);
  *push.mutable_lease() = *lease_;
  push.set_version(version_);
  push.set_trained_from(result_->version);
  push.set_examples(result_->examples);
  push.set_with_history(result_->with_history);
  push.set_loss(result_->loss);
  for (const float output : result_->outputs) push.add_output(output);
  push.set_seconds(result_->seconds);
  push.set_score(result_->score);
  push.set_failure(result_->failure);
  push.set_fatal(result_->fatal);
  result_->version = version_;
  result_->from = state_;
  Payload sent;
  if (result_->failure.empty()) {
    sent = work_->keep_values() ? math_.Offer(result_->values, false) : math_.Encode(result_->values, state_, version_);
  }
  push.set_kept(work_->keep_values());
  if (sent && work_->keep_values()) {
    // Said, not sent.
  } else if (sent) {
    push.set_digest(DigestOf(*sent));
    sender_.Start(push.id(), sent, now);
  } else if (result_->failure.empty()) {
    push.set_failure("its values are not all finite");
  }
  // Others go on without it: nothing is wrong with what they exchange.
  if (!push.failure().empty()) EndExchange();
  push_ = push;
  SendPush();
  Poll(now);
}

std::optional<TrainTask> Worker::TakeTask() {
  if (phase_ != Phase::kMember || training_ || !work_ || !lease_ || !state_ || version_ != work_->version() ||
      digest_ != work_->digest() || !work_->has_iteration()) {
    return std::nullopt;
  }
  const bool ahead = result_ && result_->failure.empty() && ahead_ && !ahead_result_;
  if (result_ && !ahead) return std::nullopt;
  const Lease& lease = ahead ? *ahead_ : *lease_;
  // From where it would have begun if the average had not come so soon: what is learned does not depend on that.
  const Result* const last = ahead ? &*result_ : beginning_ && beginning_->failure.empty() ? &*beginning_ : nullptr;
  training_ = true;
  steps_before_ += steps_of_task_;
  steps_of_task_ = 0;
  TrainTask task;
  task.goes_on = last != nullptr;
  task.version = last ? last->version : version_;
  task.own = !last && own_ && own_version_ > work_->center() && own_version_ <= version_;
  task.state = last ? last->values : task.own ? own_ : state_;
  task.iteration = work_->iteration() + (ahead ? lease_->steps().count() : 0);
  task.steps = StepsOf(lease.steps());
  task.lease = lease.serial();
  task.stride = work_->stride();
  task.with_history = work_->with_history();
  task.slot = slot_;
  task_ = Result{};
  task_.lease = task.lease;
  // Never the version that its values are pushed for: these are to be moved to the average.
  task_.version = task.version;
  task_.with_history = task.with_history;
  task_.from = task.own ? state_ : task.state;
  beginning_.reset();
  making_.reset();
  return task;
}

void Worker::OnProgress(uint64_t steps_of_task) { steps_of_task_ = steps_of_task; }

void Worker::OnMaking(uint64_t lease, const Payload& values, uint64_t examples, uint64_t there_from, Milliseconds now) {
  if (!Wanted(lease) || task_.with_history) return;  // values that are sent with a history are not complete yet
  CREMA_CHECK(values && task_.lease == lease);
  making_ = {values, examples, there_from};
  next_tick_ = now;
}

void Worker::OnTrained(TrainResult result, Milliseconds now) {
  CREMA_CHECK(training_ && result.lease == task_.lease);
  // It may be wanted again by now.
  const bool broken_off = !result.values && result.failure.empty();
  const bool wanted = !broken_off && Wanted(result.lease);
  training_ = false;
  making_.reset();
  if (!wanted) return;
  static_cast<TrainResult&>(task_) = std::move(result);
  (lease_ && lease_->serial() == task_.lease ? result_ : ahead_result_) = std::move(task_);
  Advance(now);
}

}  // namespace crema
