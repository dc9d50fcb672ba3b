// Who takes part.
#include <algorithm>
#include <utility>

#include "base/listed.h"
#include "base/printable.h"
#include "distributed/protocol/coordinator.h"
#include "distributed/protocol/protocol_version.h"

namespace crema {

void Coordinator::OnHello(const std::string& route, const ClusterMessage& message, Milliseconds now) {
  const Hello& hello = message.hello();
  const auto refuse = [&](Refusal::Kind kind, const std::string& reason) {
    Refuse(route, kind, reason, hello.incarnation());
  };
  if (hello.major() != kProtocolMajor) {
    return refuse(Refusal::FINAL, "this coordinator speaks version " + std::to_string(kProtocolMajor) +
                                      " of the protocol, the worker " + std::to_string(hello.major()) +
                                      "; run the same crema on all machines");
  }
  if (message.job() != 0 && message.job() != options_.job) {
    return refuse(Refusal::FINAL, "this coordinator runs another training than the worker was part of");
  }
  // Whoever was a member once and missed the end is told of it as the others are.
  if (phase_ == Phase::kEnding && message.job() == 0) {
    return refuse(Refusal::FINAL, "training has ended: " + end_reason_);
  }
  for (auto& [id, member] : members_) {
    if (member.incarnation != hello.incarnation()) continue;
    // A Welcome that was lost. From elsewhere it is a copy of what somebody else said.
    if (member.route != route) return refuse(Refusal::NOT_A_MEMBER, "this place was taken by another connection");
    if (message.sequence() <= member.sequence) return Drop();
    member.sequence = message.sequence();
    member.heard = now;
    return SendWelcome(member);
  }
  if (hello.incarnation() == 0) return Drop();
  // Of a member that is out by now, and asks again; or a copy of what somebody else said.
  if (incarnations_.count(hello.incarnation()) > 0) return refuse(Refusal::NOT_A_MEMBER, "this connection is over");
  // The same process anew: what it was before is over.
  bool takes_part = false;  // in the open round
  for (auto member = members_.begin(); member != members_.end(); ++member) {
    if (member->second.process == hello.process()) {
      takes_part = open_ && !options_.stale && !exchange_ && member->second.lease && member->second.late == 0;
      Remove(member, "connects anew", now);
      break;
    }
  }
  if (phase_ == Phase::kRecovering && Lost(hello)) MakeRoom(now);
  if (members_.size() >= static_cast<size_t>(options_.max_workers)) {
    return refuse(Refusal::FULL, "there are max_workers workers (" + std::to_string(options_.max_workers) + ")");
  }
  incarnations_.insert(hello.incarnation());
  Admit(route, hello, now);
  Member& member = members_.at(last_member_);
  member.sequence = message.sequence();
  Adopt(member, hello);
  // It was not told of that round, or not in time: this stood still, or the line was down.
  if (takes_part && !member.lease) GiveLease(member);
  SendWelcome(member);
}

void Coordinator::Admit(const std::string& route, const Hello& hello, Milliseconds now) {
  Member& member = members_.try_emplace(++last_member_, options_.transfer, options_.most_push_bytes).first->second;
  member.id = last_member_;
  member.process = hello.process();
  member.incarnation = hello.incarnation();
  member.name = Printable(hello.name().substr(0, 200));
  member.route = route;
  member.slot = places_.Take(hello.has_slot() ? std::optional<uint32_t>(hello.slot()) : std::nullopt);
  member.joined = member.heard = member.progressed = now;
  ++generation_;
}

void Coordinator::SendWelcome(Member& member) {
  ClusterMessage message;
  Welcome& welcome = *message.mutable_welcome();
  welcome.set_incarnation(member.incarnation);
  welcome.set_slot(member.slot);
  welcome.set_solver(options_.solver);
  for (const std::string& folder : options_.search_folders) welcome.add_search_folders(folder);
  welcome.set_seed(options_.seed);
  for (const Welcome::Data& data : options_.data) *welcome.add_data() = data;
  for (const Welcome::Data& data : options_.test_data) *welcome.add_test_data() = data;
  SendTo(member, Lane::kControl, std::move(message));
}

// What a worker had done when its connection, or the coordinator, was lost.
void Coordinator::Adopt(Member& member, const Hello& hello) {
  const bool same = hello.has_digest() && hello.version() == version_ && hello.digest() == digest_;
  if (same) {
    member.version = version_;
    member.has_serial = state_serial_;
    member.has_all = true;
  }
  if (hello.has_digest()) member.says_version = hello.version();
  if (hello.has_slot()) member.had_slot = hello.slot();
  const bool has_work = hello.lease().serial() != 0;
  if (phase_ == Phase::kRecovering) {
    if (Lost(hello)) member.version = hello.version();
    // Whether it is of use is known when there is a state again.
    if (member.version && has_work) member.brought = hello.lease();
  } else if (same && has_work && phase_ != Phase::kEnding) {
    TakeUp(member, hello.lease());
  }
}

// Work on the state of now, on steps that nobody else has.
void Coordinator::TakeUp(Member& member, const Lease& lease) {
  const Steps steps = StepsOf(lease.steps());
  // Not so far ahead that the steps between would be made up.
  const uint64_t ahead = static_cast<uint64_t>(options_.max_workers) * static_cast<uint64_t>(options_.local_steps);
  if (steps.count == 0 || steps.count > static_cast<uint64_t>(options_.local_steps) ||
      steps.first > ledger_.next() + ahead || !ledger_.TakeThese(steps)) {
    return;
  }
  member.lease = lease;
  Rebase(member);
}

// Whether a worker brings what this coordinator looks for.
bool Coordinator::Lost(const Hello& hello) const {
  return std::any_of(lost_.begin(), lost_.end(), [&](const JournalRecord::Commit& commit) {
    return commit.version() == hello.version() && commit.digest() == hello.digest();
  });
}

// Takes the place of a worker that brought nothing, where all are taken.
void Coordinator::MakeRoom(Milliseconds now) {
  if (members_.size() < static_cast<size_t>(options_.max_workers)) return;
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& entry) { return entry.second.version.value_or(0) <= version_; });
  if (found != members_.end()) Remove(found, "makes room for one that has the parameters of a later round", now);
}

// One that joined anew may have made the state itself, and was not told that it counts.
void Coordinator::NoteMade(Member& member, const Heartbeat& heartbeat, Milliseconds now) {
  member.says_version = heartbeat.version();
  const uint64_t made = heartbeat.version() + 1;
  const auto is_made = [&](uint64_t version, uint64_t digest) {
    return heartbeat.has_exchanged_digest() && made == version && heartbeat.exchanged_digest() == digest;
  };
  if (phase_ == Phase::kRecovering) {
    std::optional<uint64_t> version = member.version;
    if (std::any_of(lost_.begin(), lost_.end(),
                    [&](const JournalRecord::Commit& lost) { return is_made(lost.version(), lost.digest()); })) {
      version = made;
    } else if (version && heartbeat.version() > *version && heartbeat.version() <= lost_.back().version()) {
      version = heartbeat.version();  // what was on its way to it came
    }
    if (version == member.version) return;
    member.version = version;
    member.brought.reset();
    member.donation.reset();
    if (donor_ == member.id) donor_ = 0;
    changed_ = true;
  } else if (is_made(version_, digest_) && member.has_serial != state_serial_) {
    member.version = version_;
    member.has_serial = state_serial_;
    member.has_all = true;
    member.delivered = now;
    changed_ = true;
  }
}

void Coordinator::OnHeartbeat(Member& member, const Heartbeat& heartbeat, Milliseconds now) {
  member.heard = now;
  if (phase_ == Phase::kEnding) return SendEnd(member);
  NoteMade(member, heartbeat, now);
  if (heartbeat.steps_in_all() > member.steps_in_all) {
    member.steps_in_all = heartbeat.steps_in_all();
    member.progressed = now;
  }
  if (heartbeat.ready() && !member.ready) {
    member.clock = SlowestClock();
    member.ready = true;
    ++ready_;
    changed_ = true;
    member.progressed = now;
    Tell(ClusterEvent::Kind::kJoined, "worker " + member.name + " joined in place " + std::to_string(member.slot));
    if (member.version != version_ && phase_ != Phase::kRecovering) SendState(member, now);
  }
  member.address = heartbeat.address();
  member.peer_bytes_sent = heartbeat.peer_bytes_sent();
  member.peer_bytes_received = heartbeat.peer_bytes_received();
  member.attempt = heartbeat.attempt();
  if (exchange_) OnExchanged(member, heartbeat, now);
  if (member.ready) {
    // It got a difference to parameters that it did not take up in time, say.
    const bool stale = options_.stale && member.lease;
    const uint64_t serial = stale ? member.base.serial : state_serial_,
                   version = stale ? member.base.version : version_;
    const bool useless = phase_ != Phase::kRecovering && member.has_serial == serial &&
                         heartbeat.version() != version && now - member.delivered >= 2 * options_.heartbeat;
    if (useless) {
      member.has_all = false;
      Rebase(member);
      SendAnew(member, now);
    }
    SendWork(member);
  } else {
    SendWelcome(member);
  }
}

void Coordinator::ReturnLease(Member& member) {
  for (std::optional<Lease>* lease : {&member.ahead, &member.lease}) {
    if (!*lease) continue;
    ledger_.Return(StepsOf((*lease)->steps()));
    lease->reset();
  }
  member.ForgetPush();
  member.late = 0;
}

void Coordinator::Remove(Members::iterator found, const std::string& why, Milliseconds now) {
  Member& member = found->second;
  const std::string text = "worker " + member.name + " (place " + std::to_string(member.slot) + ") " + why;
  const bool was_ready = member.ready;
  ready_ -= was_ready;
  if (was_ready) AccountForGone(member, now);
  places_.Return(member.slot);
  changed_ = true;
  ReturnLease(member);
  if (donor_ == member.id) donor_ = 0;
  LeaveExchange(member);
  members_.erase(found);
  ++generation_;
  if (phase_ == Phase::kEnding) return;
  Tell(was_ready ? ClusterEvent::Kind::kLeft : ClusterEvent::Kind::kWarning, text);
}

void Coordinator::Lose(const std::string& name, const std::string& route, Milliseconds now) {
  for (auto next = members_.begin(); next != members_.end();) {
    const auto member = next++;
    if (member->second.name != name || !member->second.route.starts_with(route)) continue;
    Remove(member, "is no more, and out", now);
  }
  Advance(now);
}

void Coordinator::CheckLiveness(Milliseconds now) {
  for (auto next = members_.begin(); next != members_.end();) {
    const auto member = next++;
    const Member& m = member->second;
    if (now - m.heard >= options_.dead) {
      if (phase_ == Phase::kEnding) {
        Tell(ClusterEvent::Kind::kWarning, "worker " + m.name + " did not answer when it was told of the end");
      }
      Remove(member, "was not heard of for " + std::to_string((now - m.heard) / 1000) + " s and is out", now);
      continue;
    }
    const bool owes = !m.ready || (open_ && m.lease && !m.has_result() && !m.failed) ||
                      (donor_ == m.id && !(m.donation && m.receiver.Whole(m.donation->id())));
    if (options_.stall > 0 && owes && now - m.progressed >= options_.stall) {
      const std::string what = m.ready ? "made no progress for " : "did not get its net and its data ready for ";
      Remove(member, what + std::to_string((now - m.progressed) / 1000) + " s and is out", now);
    }
  }
}

// Whoever does not hear of the end would look for a coordinator for long, and then call it a failure.
void Coordinator::Linger(Milliseconds now) {
  const Milliseconds lasted = now - ending_since_, soon = 3 * options_.heartbeat;
  if (members_.empty() || linger_over_ || lasted < soon) return;
  const auto names = [this] {
    return Listed(
        std::views::transform(members_, [](const auto& one) -> const std::string& { return one.second.name; }));
  };
  if (hurried_ || lasted >= std::max(options_.dead, soon)) {
    linger_over_ = true;
    Tell(ClusterEvent::Kind::kWarning, "this ends though not all workers answered when they were told of the end: " +
                                           names() + "; they look for a coordinator for as long as orphan_ms says");
  } else if (!std::exchange(told_lingering_, true)) {
    Tell(ClusterEvent::Kind::kNotice, "waiting until all workers know of the end, for at most " +
                                          std::to_string(options_.dead / 1000) + " s; not yet: " + names());
  }
}

}  // namespace crema
