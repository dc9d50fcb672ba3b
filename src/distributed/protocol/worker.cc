#include "distributed/protocol/worker.h"

#include <algorithm>

#include "base/check.h"
#include "base/printable.h"
#include "distributed/protocol/protocol_version.h"
#include "distributed/protocol/welcome_terms.h"

namespace crema {

namespace {

constexpr Milliseconds kLongestBackoff = 8'000;

// Another one for every connection of a process, none of them 0.
uint64_t IncarnationOf(uint64_t process, uint64_t count) {
  uint64_t x = process + count * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return (x ^ (x >> 31)) | 1;
}

}  // namespace

Worker::Worker(WorkerOptions options, WorkerMath& math, Milliseconds now)
    : options_(std::move(options)), math_(math), heard_(now), sender_(options_.transfer) {
  CREMA_CHECK(options_.process != 0);
  Join(now);
  OnTick(now);
}

void Worker::Send(Lane lane, ClusterMessage message, Slice slice) {
  message.set_job(job_);
  message.set_epoch(epoch_);
  message.set_member(member_);
  message.set_sequence(++sequence_);
  outgoing_.push_back({"", lane, std::move(message), std::move(slice)});
}

// Says Hello anew, bringing along what it has.
void Worker::Join(Milliseconds now) {
  if (phase_ == Phase::kEnded) return;
  phase_ = Phase::kJoining;
  no_place_.clear();
  member_ = 0;
  incarnation_ = IncarnationOf(options_.process, ++incarnations_);
  heard_sequence_ = heard_bulk_sequence_ = 0;
  // The first one may be said before there is a connection.
  backoff_ = std::max<Milliseconds>(1, options_.timing.heartbeat / 16);
  hello_ = now;
  if (push_) math_.Settle(WorkerMath::Outcome::kUnknown);
  push_.reset();
  donation_.reset();
  sender_.Cancel();
  receiver_.Forget();
  work_.reset();
  own_ = pushed_ = nullptr;
  // What came of one may have been committed without a word: whoever has it says so in its heartbeats.
  if (exchange_ && !exchange_->state) EndExchange();
}

void Worker::SendHello(Milliseconds now) {
  hello_ = now + backoff_;
  backoff_ = std::min(2 * backoff_, kLongestBackoff);
  ClusterMessage message;
  Hello& hello = *message.mutable_hello();
  hello.set_major(kProtocolMajor);
  hello.set_minor(kProtocolMinor);
  hello.set_process(options_.process);
  hello.set_incarnation(incarnation_);
  hello.set_name(options_.name);
  if (state_) {
    hello.set_version(version_);
    hello.set_digest(digest_);
  }
  // Not what was trained from older parameters: that was late already. Nor from results, which may come to nothing.
  const Payload base = result_ ? result_->from : training_ ? task_.from : nullptr;
  if (lease_ && base && base == state_) *hello.mutable_lease() = *lease_;
  if (has_slot_) hello.set_slot(slot_);
  Send(Lane::kControl, std::move(message));
}

void Worker::OnMessage(const ClusterMessage& message, std::span<const std::byte> bytes, Milliseconds now) {
  if (phase_ == Phase::kEnded) return;
  // Of another training, or of a coordinator that was replaced.
  const bool foreign = job_ != 0 && message.job() != job_;
  // ... unless it says that it is of another one: then nobody is left to wait for.
  if (foreign && message.has_refusal() && message.refusal().kind() == Refusal::FINAL) {
    return OnRefusal(message.refusal(), now);
  }
  if (foreign || message.epoch() < epoch_) return;
  const bool bulk = message.has_chunk() || message.has_chunk_received();
  if (message.has_refusal()) return OnRefusal(message.refusal(), now);
  if (message.has_welcome()) return OnWelcome(message, now);
  if (phase_ == Phase::kJoining || message.epoch() != epoch_ || message.member() != member_) return;
  uint64_t& sequence = bulk ? heard_bulk_sequence_ : heard_sequence_;
  if (message.sequence() <= sequence) return;
  sequence = message.sequence();
  heard_ = now;
  switch (message.body_case()) {
    case ClusterMessage::kWork:
      OnWork(message.work(), now);
      break;
    case ClusterMessage::kEnd:
      completed_ = message.end().completed();
      training_failed_ = message.end().failed();
      hopeless_ = message.end().hopeless();
      return Leave(OneLine(message.end().reason()), now);
    case ClusterMessage::kChunk:
      if (const auto answer = receiver_.OnChunk(message.chunk(), bytes)) {
        ClusterMessage reply;
        *reply.mutable_chunk_received() = *answer;
        Send(Lane::kBulk, std::move(reply));
      }
      break;
    case ClusterMessage::kChunkReceived:
      sender_.OnReceived(message.chunk_received(), now);
      Poll(now);
      break;
    default:
      break;
  }
  Advance(now);
}

void Worker::OnRefusal(const Refusal& refusal, Milliseconds now) {
  if (refusal.kind() == Refusal::NOT_A_MEMBER) {
    if (phase_ == Phase::kMember || phase_ == Phase::kBuilding) {
      heard_ = now;
      Join(now);
    } else if (phase_ == Phase::kJoining && refusal.incarnation() == incarnation_) {
      // Its Hello was taken, and what came of that is over.
      heard_ = now;
      Join(now);
    }
    return;
  }
  if (phase_ != Phase::kJoining || refusal.incarnation() != incarnation_) return;
  heard_ = now;
  if (refusal.kind() == Refusal::FULL) {
    no_place_ = OneLine(refusal.reason());
    return;
  }
  End(OneLine(refusal.reason()), true);
}

void Worker::OnWelcome(const ClusterMessage& message, Milliseconds now) {
  const Welcome& welcome = message.welcome();
  if (welcome.incarnation() != incarnation_ || phase_ != Phase::kJoining) return;
  heard_ = now;
  no_place_.clear();
  job_ = message.job();
  epoch_ = message.epoch();
  member_ = message.member();
  heard_sequence_ = message.sequence();
  slot_ = welcome.slot();
  has_slot_ = true;
  ClusterMessage attach;
  attach.mutable_attach()->set_incarnation(incarnation_);
  Send(Lane::kBulk, std::move(attach));
  phase_ = built_ ? Phase::kMember : Phase::kBuilding;
  if (!welcomed_) {
    welcome_ = terms_ = welcome;
  } else if (const std::string changed = ChangedTerms(terms_, welcome); !changed.empty()) {
    Leave("the coordinator was started again with another " + OneLine(changed) +
              ": start it with what it had, or this worker again",
          now);
    failed_ = true;
    return;
  }
  welcomed_ = true;
  SendHeartbeat(now);
}

void Worker::OnBuilt(uint64_t most_state_bytes, const WorkerTiming& timing, const TransferOptions& transfer,
                     DistributedParameter::Topology topology, PeerAddress address, Milliseconds now) {
  CREMA_CHECK(!built_);
  built_ = true;
  options_.timing = timing;
  options_.transfer = transfer;
  options_.topology = topology;
  options_.address = std::move(address);
  receiver_.set_most(most_state_bytes);
  sender_.set_options(transfer);
  if (phase_ == Phase::kBuilding) {
    phase_ = Phase::kMember;
    SendHeartbeat(now);
  }
}

void Worker::SendPush() {
  for (const std::optional<Push>& push : {push_, donation_}) {
    if (!push) continue;
    ClusterMessage message;
    *message.mutable_push() = *push;
    Send(Lane::kControl, std::move(message));
  }
}

void Worker::SendHeartbeat(Milliseconds now) {
  heartbeat_ = now + options_.timing.heartbeat;
  ClusterMessage message;
  Heartbeat& heartbeat = *message.mutable_heartbeat();
  heartbeat.set_ready(built_);
  heartbeat.set_version(version_);
  if (lease_) *heartbeat.mutable_lease() = *lease_;
  heartbeat.set_steps_done(steps_of_task_);
  heartbeat.set_steps_in_all(steps_before_ + steps_of_task_);
  if (push_) heartbeat.set_push(push_->id());
  if (options_.topology != DistributedParameter::STAR) {
    *heartbeat.mutable_address() = options_.address;
    heartbeat.set_peer_bytes_sent(peer_bytes_sent());
    heartbeat.set_peer_bytes_received(peer_bytes_received());
  }
  if (exchange_) {
    heartbeat.set_attempt(exchange_->attempt);
    heartbeat.set_exchanged_bytes(exchange_->transfers->bytes_received());
    if (exchange_->state) heartbeat.set_exchanged_digest(exchange_->digest);
    heartbeat.set_exchange_failure(exchange_->failure);
  }
  Send(Lane::kControl, std::move(message));
}

void Worker::Poll(Milliseconds now) {
  if (member_ == 0) return;
  sender_.Poll(now, [&](Chunk chunk, Slice slice) {
    ClusterMessage message;
    *message.mutable_chunk() = std::move(chunk);
    Send(Lane::kBulk, std::move(message), std::move(slice));
  });
}

void Worker::OnTick(Milliseconds now) {
  if (phase_ == Phase::kEnded) return;
  // Of a time when this process stood still it cannot be said that nobody spoke.
  const Milliseconds late = now - next_tick_;
  if (late >= options_.timing.heartbeat) heard_ = std::min(now, heard_ + late);
  next_tick_ = now + std::max<Milliseconds>(1, options_.timing.heartbeat / (phase_ == Phase::kJoining ? 16 : 2));
  const Milliseconds silent = now - heard_;
  if (silent >= options_.timing.orphan) {
    return End("the coordinator was not heard of for " + std::to_string(silent / 1000) + " s", true);
  }
  if (phase_ == Phase::kJoining) {
    if (now >= hello_) SendHello(now);
  } else if (silent >= options_.timing.dead) {
    Join(now);
  } else if (now >= heartbeat_) {
    SendHeartbeat(now);
    ClusterMessage attach;
    attach.mutable_attach()->set_incarnation(incarnation_);
    Send(Lane::kBulk, std::move(attach));
    SendPush();
  }
  // A connection may look alive and lead nowhere.
  if (silent >= options_.timing.dead && now - reconnected_ >= options_.timing.dead) {
    reconnected_ = now;
    reconnect_ = true;
    if (phase_ == Phase::kJoining) Join(now);
  }
  if (phase_ != Phase::kJoining) Poll(now);
  Advance(now);
}

void Worker::Leave(const std::string& reason, Milliseconds) {
  if (phase_ == Phase::kEnded) return;
  if (member_ != 0) {
    ClusterMessage message;
    message.mutable_leave()->set_reason(reason);
    Send(Lane::kControl, std::move(message));
  }
  End(reason, false);
}

void Worker::End(const std::string& reason, bool failed) {
  phase_ = Phase::kEnded;
  end_reason_ = reason;
  failed_ = failed;
}

}  // namespace crema
