// After rounds among workers they alone have the state: it is asked for where it is needed, and what they did since it
// was last here may be lost with them.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "distributed/journal/digest.h"
#include "distributed/protocol/coordinator.h"

namespace crema {

// The state; nothing is committed until it is here.
void Coordinator::Want(Milliseconds now) {
  if (std::exchange(wanted_, true)) return;
  wanted_since_ = now;
  changed_ = true;
}

void Coordinator::TendKeeping(Milliseconds now) {
  if (!wanted_ || phase_ == Phase::kRecovering || phase_ == Phase::kEnding) return;
  const bool impatient = end_when_here_ && now - wanted_since_ >= 6 * options_.dead;
  if (donor_ != 0 && !impatient) return;
  const std::vector<Member*> members = BySlot();
  const auto donor =
      std::find_if(members.begin(), members.end(), [this](const Member* member) { return HasState(*member); });
  if (donor == members.end() || impatient) return LoseState(now);
  donor_ = (*donor)->id;
  (*donor)->progressed = now;
  SendWork(**donor);
}

void Coordinator::TakeDonation(Member& member, Milliseconds now) {
  if (donor_ != member.id || !member.donation) return;
  const Payload state = member.receiver.Whole(member.donation->id());
  if (!state) return;
  const uint64_t digest = DigestOf(*state);
  const bool recovering = phase_ == Phase::kRecovering;
  if (digest != member.donation->digest() ||
      (!recovering && (digest != digest_ || member.donation->version() != version_))) {
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + " sent parameters that do not fit their fingerprint");
    member.has_serial = 0;
    return Disbelieve(member);
  }
  if (recovering) return TakeRecovered(member, state, now);
  state_ = state;
  math_.Restore(state);
  member.receiver.Release(member.donation->id());
  member.donation.reset();
  donor_ = 0;
  wanted_ = false;
  changed_ = true;
  for (auto& [id, other] : members_) {
    SendState(other, now);
    if (other.ready) SendWork(other);
  }
  if (pending_) Announce(*std::exchange(pending_, std::nullopt), now);
  if (end_when_here_ && phase_ != Phase::kEnding) BeginEnding(*end_when_here_, now);
}

// Before a commit that leaves the state with the workers.
void Coordinator::Keep() {
  if (!state_) return;
  kept_ = {state_, version_, iteration_, digest_, ledger_.next(), ledger_.unused(), {}};
}

// Nobody is here who has the state. One who has it may come back.
void Coordinator::LoseState(Milliseconds now) {
  CREMA_CHECK(kept_.state && !kept_.since.empty());
  const std::string rounds = std::to_string(kept_.version + 1) + " to " + std::to_string(version_);
  lost_ = std::exchange(kept_.since, {});
  GoBack();
  if (end_when_here_) {
    // Else whoever goes on would look for a worker that has them. Where the disk is full that is what happens.
    VoidAfter(version_, iteration_, now);
    lost_.clear();
    Tell(ClusterEvent::Kind::kLost, "rounds " + rounds + " are lost: all workers that had their parameters are gone");
    return BeginEnding(*end_when_here_, now);
  }
  phase_ = Phase::kRecovering;
  recovering_since_ = now;
  changed_ = true;
  Tell(ClusterEvent::Kind::kLost, "all workers that had the parameters of rounds " + rounds +
                                      " are gone: waiting for one of them, for at most " +
                                      std::to_string(options_.recovery / 1000) + " s");
}

// To the last state that was here.
void Coordinator::GoBack() {
  exchange_.reset();
  pending_.reset();
  open_ = wanted_ = false;
  donor_ = 0;
  for (auto& [id, member] : members_) {
    member.lease.reset();
    member.ahead.reset();
    member.ForgetPush();
    member.donation.reset();
    // What it has is perhaps one of the states that are looked for; whoever is asked for it says which.
    const bool lost = member.says_version > kept_.version && member.says_version <= lost_.back().version();
    member.version = lost ? std::optional<uint64_t>(member.says_version) : std::nullopt;
    if (!member.had_slot) member.had_slot = member.slot;
    member.brought.reset();
    member.late = 0;
    member.has_serial = 0;
  }
  ledger_ = Ledger(kept_.next_step, kept_.unused);
  version_ = kept_.version;
  iteration_ = kept_.iteration;
  digest_ = kept_.digest;
  state_ = kept_.state;
  difference_ = whole_ = nullptr;
  ++state_serial_;
  math_.Restore(state_);
}

}  // namespace crema
