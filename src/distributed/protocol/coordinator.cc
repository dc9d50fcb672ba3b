// What comes in and goes out.
#include "distributed/protocol/coordinator.h"

#include <algorithm>

#include "base/check.h"
#include "base/printable.h"

namespace crema {

Coordinator::Coordinator(CoordinatorOptions options, CoordinatorStart start, RoundMath& math, Journal& journal,
                         Milliseconds now)
    : options_(std::move(options)),
      math_(math),
      journal_(journal),
      epoch_(start.epoch),
      version_(start.version),
      iteration_(start.iteration),
      digest_(start.digest),
      carried_(start.carried),
      center_(start.version),
      state_(std::move(start.state)),
      ledger_(std::move(start.ledger)),
      lost_(std::move(start.lost)),
      recovering_since_(now) {
  CREMA_CHECK(state_ && epoch_ > 0);
  // Serials of states and leases grow from one start to the next.
  state_serial_ = (epoch_ << 40) + 1;
  last_lease_ = last_attempt_ = epoch_ << 40;
  // What is to be recovered counts until it is given up, and this epoch is never used again.
  JournalRecord record;
  record.mutable_start()->set_job(options_.job);
  record.mutable_start()->set_epoch(epoch_);
  record.mutable_start()->set_version(lost_.empty() ? version_ : lost_.back().version());
  record.mutable_start()->set_iteration(lost_.empty() ? iteration_ : lost_.back().iteration());
  journal_.Write(record);
  if (!lost_.empty()) {
    phase_ = Phase::kRecovering;
    awaited_ = static_cast<size_t>(lost_.back().share_size());
    Tell(ClusterEvent::Kind::kWarning,
         "the journal is ahead of the snapshot, by rounds " + std::to_string(version_ + 1) + " to " +
             std::to_string(lost_.back().version()) + ": looking for a worker that has their parameters, for at most " +
             std::to_string(options_.recovery / 1000) + " s");
  }
  held_ = options_.hold_at_stops;
  next_tick_ = now;
  OnTick(now);
}

void Coordinator::OnMessage(const std::string& route, const ClusterMessage& message, std::span<const std::byte> bytes,
                            Milliseconds now) {
  ForgiveStandstill(now);
  const bool of_this_job = message.job() == options_.job;
  switch (message.body_case()) {
    case ClusterMessage::kHello:
      OnHello(route, message, now);
      break;
    case ClusterMessage::kInquiry:
      OnInquiry(route, message, now);
      break;
    case ClusterMessage::kAttach: {
      const auto found = members_.find(message.member());
      // From another route: the connection was made anew. A copy of an older message is not newer than what came since.
      if (!of_this_job || message.epoch() != epoch_ || found == members_.end() ||
          found->second.incarnation != message.attach().incarnation() ||
          message.sequence() <= found->second.bulk_sequence) {
        return Drop();
      }
      found->second.bulk_sequence = message.sequence();
      found->second.bulk_route = route;
      Poll(found->second, now);
      break;
    }
    case ClusterMessage::kChunk:
      if (Member* member = MemberOf(route, message, true)) {
        const auto answer = member->receiver.OnChunk(message.chunk(), bytes);
        if (!answer) return Drop();
        member->progressed = now;
        ClusterMessage reply;
        *reply.mutable_chunk_received() = *answer;
        SendTo(*member, Lane::kBulk, std::move(reply));
        TakeValues(*member, now);
        TakeDonation(*member, now);
      }
      break;
    case ClusterMessage::kChunkReceived:
      if (Member* member = MemberOf(route, message, true)) {
        member->sender.OnReceived(message.chunk_received(), now);
        NoteDelivered(*member, now);
        member->progressed = now;
        Poll(*member, now);
      }
      break;
    case ClusterMessage::kHeartbeat:
      if (Member* member = MemberOf(route, message, false)) OnHeartbeat(*member, message.heartbeat(), now);
      break;
    case ClusterMessage::kPush:
      if (Member* member = MemberOf(route, message, false)) OnPush(*member, message.push(), now);
      break;
    case ClusterMessage::kLeave:
      if (MemberOf(route, message, false)) {
        Remove(members_.find(message.member()), "left: " + OneLine(message.leave().reason()), now);
      }
      break;
    default:
      return Drop();
  }
  Advance(now);
}

void Coordinator::OnInquiry(const std::string& route, const ClusterMessage& message, Milliseconds now) {
  const Inquiry::Request request = message.inquiry().request();
  if (request != Inquiry::STATUS && phase_ != Phase::kEnding && !(draining_ && request == Inquiry::DRAIN)) {
    Tell(ClusterEvent::Kind::kNotice, request == Inquiry::DRAIN ? "asked to drain: training ends when the round is done"
                                                                : "asked to stop: training ends without the round");
  }
  if (request == Inquiry::DRAIN) Drain("drained on request", now);
  if (request == Inquiry::STOP) {
    // A copy of what ended the training does not give up what it learnt.
    const bool again = std::exchange(stopped_by_, message.sequence()) == message.sequence();
    if (!unwritten_.empty() && !again) {
      end_without_room_ = true;
      Tell(ClusterEvent::Kind::kNotice, "asked to stop: this ends without what there is no room for");
    }
    Stop("stopped on request", now);
  }
  ClusterMessage answer;
  *answer.mutable_status() = Status(now);
  SendTo(route, std::move(answer));
}

Coordinator::Member* Coordinator::MemberOf(const std::string& route, const ClusterMessage& message, bool bulk) {
  const auto found = members_.find(message.member());
  if (message.job() != options_.job || message.epoch() != epoch_ || found == members_.end()) {
    Drop();
    if (!bulk) Refuse(route, Refusal::NOT_A_MEMBER, "");
    return nullptr;
  }
  Member& member = found->second;
  uint64_t& sequence = bulk ? member.bulk_sequence : member.sequence;
  if ((bulk ? member.bulk_route : member.route) != route || message.sequence() <= sequence) {
    Drop();
    // Whose connection was made anew has to join by it.
    if (!bulk && member.route != route) Refuse(route, Refusal::NOT_A_MEMBER, "");
    return nullptr;
  }
  sequence = message.sequence();
  return &member;
}

void Coordinator::SendTo(Member& member, Lane lane, ClusterMessage message, Slice slice) {
  const std::string& route = lane == Lane::kBulk ? member.bulk_route : member.route;
  if (route.empty()) return;
  message.set_job(options_.job);
  message.set_epoch(epoch_);
  message.set_member(member.id);
  message.set_sequence(++sequence_);
  outgoing_.push_back({route, lane, std::move(message), std::move(slice)});
}

void Coordinator::SendTo(const std::string& route, ClusterMessage message) {
  message.set_job(options_.job);
  message.set_epoch(epoch_);
  message.set_sequence(++sequence_);
  outgoing_.push_back({route, Lane::kControl, std::move(message), {}});
}

void Coordinator::Refuse(const std::string& route, Refusal::Kind kind, const std::string& reason,
                         uint64_t incarnation) {
  ClusterMessage message;
  message.mutable_refusal()->set_kind(kind);
  message.mutable_refusal()->set_reason(reason);
  message.mutable_refusal()->set_incarnation(incarnation);
  SendTo(route, std::move(message));
}

void Coordinator::Poll(Member& member, Milliseconds now) {
  if (member.bulk_route.empty()) return;
  member.sender.Poll(now, [&](Chunk chunk, Slice slice) {
    ClusterMessage message;
    *message.mutable_chunk() = std::move(chunk);
    SendTo(member, Lane::kBulk, std::move(message), std::move(slice));
  });
}

void Coordinator::Tell(ClusterEvent::Kind kind, std::string text) {
  ClusterEvent event;
  event.kind = kind;
  event.text = std::move(text);
  event.workers = ReadyWorkers();
  events_.push_back(std::move(event));
}

bool Coordinator::ForgiveStandstill(Milliseconds now) {
  const Milliseconds late = now - next_tick_;
  if (late < options_.heartbeat) return false;
  const auto forgive = [&](Milliseconds& since) { since = std::min(now, since + late); };
  for (auto& [id, member] : members_) {
    for (Milliseconds* since : {&member.heard, &member.progressed, &member.pushed}) forgive(*since);
  }
  for (Milliseconds* since : {&recovering_since_, &wanted_since_, &ending_since_, &patient_since_}) forgive(*since);
  if (waiting_since_) forgive(*waiting_since_);
  if (exchange_) forgive(exchange_->progressed);
  next_tick_ = now + std::max<Milliseconds>(1, options_.heartbeat / 2);
  return true;
}

void Coordinator::OnTick(Milliseconds now) {
  // What came meanwhile is read before anybody is called dead; but one that always stands still has to look some time.
  const bool stood_still = ForgiveStandstill(now);
  const bool looks = !stood_still || stood_still_;
  stood_still_ = stood_still && !looks;
  next_tick_ = now + std::max<Milliseconds>(1, options_.heartbeat / 2);
  changed_ = true;
  if (looks) CheckLiveness(now);
  for (auto& [id, member] : members_) Poll(member, now);
  Advance(now);
  if (now - recovering_since_ >= options_.dead || hurried_) awaited_ = 0;
  if (phase_ == Phase::kEnding) Linger(now);
}

}  // namespace crema
