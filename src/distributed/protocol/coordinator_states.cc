// What workers are sent: parameters, and what to do with them.
#include <algorithm>
#include <utility>

#include "distributed/protocol/coordinator.h"

namespace crema {

namespace {

// A state is sent to a worker in one form, and again in another where it cannot use that.
constexpr uint64_t kTransfersOfAState = 16;
uint64_t SerialOf(uint64_t transfer) { return transfer / kTransfersOfAState; }

}  // namespace

void Coordinator::SendState(Member& member, Milliseconds now) {
  if (!member.ready || member.has_serial == state_serial_ || SerialOf(member.sender.id()) == state_serial_) return;
  // Others go on from what they have.
  if (options_.stale && !(member.lease && member.base.version == version_)) return;
  if (!state_) return Want(now);
  if (member.has_serial + 1 != state_serial_ || !difference_ || member.own_state) return SendAnew(member, now);
  member.form = Work::DIFFERENCE;
  member.sender.Start(kTransfersOfAState * state_serial_, difference_, now);
  member.account.OnParametersSent(now);
  Poll(member, now);
}

// Whatever it has.
void Coordinator::SendAnew(Member& member, Milliseconds now) {
  const uint64_t id = std::max(kTransfersOfAState * state_serial_, member.sender.id() + 1);
  if (SerialOf(id) != state_serial_) return;
  if (!state_) return Want(now);
  const Payload& state = member.own_state ? member.own_state : state_;
  if (!member.has_all && !member.own_state && !whole_) whole_ = math_.Whole(state_);
  member.form = member.has_all ? Work::STATE : Work::WHOLE;
  member.has_serial = 0;
  member.sender.Start(id, member.has_all ? state : member.own_state ? math_.Whole(state) : whole_, now);
  member.account.OnParametersSent(now);
  Poll(member, now);
}

void Coordinator::NoteDelivered(Member& member, Milliseconds now) {
  if (!member.sender.done() || member.has_serial == SerialOf(member.sender.id())) return;
  member.has_serial = SerialOf(member.sender.id());
  member.delivered = now;
  member.account.OnParametersReceived(now);
  member.has_all |= member.form == Work::WHOLE;
}

void Coordinator::SendWork(Member& member) {
  ClusterMessage message;
  Work& work = *message.mutable_work();
  work.set_slot(member.slot);
  work.set_generation(generation_);
  if (phase_ == Phase::kRecovering) {
    // Keep what you have, and what you are at: no state goes with this.
    work.set_version(member.version.value_or(0));
    for (const JournalRecord::Commit& commit : lost_) {
      if (commit.version() == member.version) work.set_digest(commit.digest());
    }
    if (member.brought) *work.mutable_lease() = *member.brought;
    work.set_wanted(donor_ == member.id);
    return SendTo(member, Lane::kControl, std::move(message));
  }
  const bool stale = options_.stale && member.lease;
  work.set_version(stale ? member.base.version : version_);
  work.set_wanted(donor_ == member.id);
  work.set_state(member.sender.id());
  work.set_form(member.form);
  work.set_committed_push(member.committed_push);
  work.set_digest(stale ? member.base.digest : member.own_state ? member.own_digest : digest_);
  work.set_keep_own(member.keeps_own);
  if (options_.own_parameters) work.set_center(center_);
  if (stale) {
    work.set_iteration(member.base.iteration);
    *work.mutable_lease() = *member.lease;
    work.set_stride(static_cast<uint64_t>(ReadyWorkers()) * member.lease->steps().count());
  } else if (open_ && member.lease) {
    work.set_iteration(round_.iteration);
    *work.mutable_lease() = *member.lease;
    work.set_stride(static_cast<uint64_t>(ReadyWorkers()) * round_.steps);
    work.set_with_history(round_.with_history);
    if (member.ahead) *work.mutable_ahead() = *member.ahead;
    if (round_.among_workers) Offer(member, work);
  } else if (member.lease) {
    // Between rounds: it may go on with what it has.
    *work.mutable_lease() = *member.lease;
    if (member.ahead) *work.mutable_ahead() = *member.ahead;
  }
  SendTo(member, Lane::kControl, std::move(message));
}

}  // namespace crema
