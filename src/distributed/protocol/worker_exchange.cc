// A worker's part in rounds whose values do not pass through the coordinator.
#include <algorithm>
#include <utility>

#include "distributed/journal/digest.h"
#include "distributed/protocol/worker.h"

namespace crema {

namespace {

uint64_t AttemptOf(const ClusterMessage& message) {
  return message.has_chunk() ? message.chunk().attempt() : message.chunk_received().attempt();
}

}  // namespace

uint64_t Worker::peer_bytes_sent() const {
  return peer_bytes_sent_ + (exchange_ ? exchange_->transfers->bytes_sent() : 0);
}
uint64_t Worker::peer_bytes_received() const {
  return peer_bytes_received_ + (exchange_ ? exchange_->transfers->bytes_received() : 0);
}

void Worker::EndExchange() {
  if (!exchange_) return;
  peer_bytes_sent_ = peer_bytes_sent();
  peer_bytes_received_ = peer_bytes_received();
  exchange_.reset();
}

void Worker::TendExchange(Milliseconds now) {
  // While its state is not committed the others may still need something from here.
  const bool counts = exchange_ && exchange_->state && exchange_->state == state_;
  if (exchange_ && (counts || !work_->has_exchange() || work_->exchange().attempt() != exchange_->attempt)) {
    EndExchange();
  }
  if (!exchange_ && work_->has_exchange() && work_->exchange().attempt() > last_attempt_) BeginExchange(now);
  if (!exchange_) return;
  GoOnWithValues(now);
  exchange_->transfers->Poll(now);
  SendToPeers();
}

// More of them may be there by now.
void Worker::GoOnWithValues(Milliseconds now) {
  const Payload& values = exchange_->making;
  if (!values) return;
  if (making_ && making_->values == values) {
    exchange_->transfers->OnValues(making_->there_from, now);
  } else if (result_ && result_->values == values) {
    exchange_->transfers->OnValues(0, now);
    exchange_->making = nullptr;
  }
  Conclude(now);
}

void Worker::BeginExchange(Milliseconds now) {
  const ExchangeOrder& order = work_->exchange();
  const bool here = result_ && lease_ && result_->lease == lease_->serial() && result_->version == version_ &&
                    result_->failure.empty() && version_ == work_->version() && digest_ == work_->digest();
  const bool making = !here && MayPromise();
  if (!(here || making) || order.peer_size() == 0 || order.rank() >= static_cast<uint32_t>(order.peer_size()) ||
      order.peer(static_cast<int>(order.rank())).member() != member_) {
    return;
  }
  const Payload values = making ? making_->values : math_.Offer(result_->values, work_->with_history());
  if (!values || !math_.exchange()) return;
  last_attempt_ = order.attempt();
  exchange_ = std::make_unique<ExchangeUnderWay>();
  exchange_->attempt = order.attempt();
  exchange_->peers.assign(order.peer().begin(), order.peer().end());
  exchange_->with_history = work_->with_history();
  ExchangePlan& plan = exchange_->plan;
  plan.topology = options_.topology;
  plan.rank = static_cast<int>(order.rank());
  plan.iteration = work_->iteration();
  plan.version = version_;
  plan.from = state_;
  PeerTransfers::PeerPaces paces;
  for (const ExchangeOrder::Peer& peer : exchange_->peers) {
    plan.examples.push_back(peer.examples());
    paces.emplace_back();
    if (peer.member() == member_) continue;
    Acquaintance& other = acquaintances_[peer.address().endpoint()];
    other.address = peer.address();
    other.attempt = last_attempt_;
    paces.back() = other.pace;
  }
  // Who was left out of a few rounds keeps its connection: what it says first would be lost.
  std::erase_if(acquaintances_, [this](const auto& other) { return other.second.attempt + 100 < last_attempt_; });
  peers_.emplace();
  for (const auto& [endpoint, other] : acquaintances_) peers_->push_back(other.address);
  if (making) exchange_->making = values;
  exchange_->transfers = std::make_unique<PeerTransfers>(plan, values, *math_.exchange(), options_.transfer, now, paces,
                                                         making ? making_->there_from : 0);
  RepeatEarly(now);
  SendHeartbeat(now);
  Conclude(now);
}

void Worker::OnPeerMessage(const std::string& public_key, const ClusterMessage& message,
                           std::span<const std::byte> bytes, Milliseconds now) {
  if (phase_ != Phase::kMember || message.job() != job_ || message.epoch() != epoch_) return;
  TakeFromPeer(public_key, message, bytes, now);
  if (!exchange_) return;
  Conclude(now);
  exchange_->transfers->Poll(now);
  SendToPeers();
}

void Worker::TakeFromPeer(const std::string& public_key, const ClusterMessage& message,
                          std::span<const std::byte> bytes, Milliseconds now) {
  if (!message.has_chunk() && !message.has_chunk_received()) return;
  const uint64_t attempt = AttemptOf(message);
  if (attempt > last_attempt_) return TakeEarly(public_key, message);
  if (!exchange_ || attempt != exchange_->attempt) return;
  const auto peer =
      std::find_if(exchange_->peers.begin(), exchange_->peers.end(), [&](const ExchangeOrder::Peer& other) {
        return other.member() == message.member() && other.address().public_key() == public_key;
      });
  if (peer == exchange_->peers.end() || peer->member() == member_) return;
  const int rank = static_cast<int>(peer - exchange_->peers.begin());
  if (message.has_chunk()) {
    exchange_->transfers->OnChunk(rank, message.chunk(), bytes, now);
  } else {
    exchange_->transfers->OnChunkReceived(rank, message.chunk_received(), now);
  }
}

// Others may know of an exchange before this one does: they say that they are there, or ask whether this one is, and
// send when it is, too. Nothing else can come then, and nothing else is kept: whoever lies should not fill the memory.
// What is dropped is asked for again.
void Worker::TakeEarly(const std::string& public_key, const ClusterMessage& message) {
  const bool is_there = message.has_chunk_received() && message.chunk_received().transfer() == 0;
  const bool asks = message.has_chunk() && message.chunk().transfer() == 0 && message.chunk().total() == 0;
  if (!is_there && !asks) return;
  const std::pair<std::string, uint64_t> sender(public_key, message.member());
  auto at = early_.find(sender);
  if (at == early_.end()) {
    if (early_.size() >= kMostEarly) {
      ++early_dropped_;
      return;
    }
    at = early_.emplace(sender, Early{}).first;
  }
  Early& early = at->second;
  const uint64_t attempt = AttemptOf(message);
  if (attempt < early.attempt) return;
  if (attempt > early.attempt) early = {.attempt = attempt};
  early.is_there |= is_there;
  early.asks |= asks;
}

void Worker::RepeatEarly(Milliseconds now) {
  for (const auto& [sender, said] : std::exchange(early_, {})) {
    if (said.attempt > last_attempt_) early_.emplace(sender, said);
    if (said.attempt != last_attempt_) continue;
    ClusterMessage message;
    message.set_member(sender.second);
    if (said.is_there) {
      message.mutable_chunk_received()->set_attempt(said.attempt);
      TakeFromPeer(sender.first, message, {}, now);
    }
    if (said.asks) {
      message.mutable_chunk()->set_attempt(said.attempt);
      TakeFromPeer(sender.first, message, {}, now);
    }
  }
}

void Worker::SendToPeers() {
  for (PeerTransfers::Outgoing& out : exchange_->transfers->TakeOutgoing()) {
    ClusterMessage& message = out.message;
    if (message.has_chunk()) {
      message.mutable_chunk()->set_attempt(exchange_->attempt);
    } else {
      message.mutable_chunk_received()->set_attempt(exchange_->attempt);
    }
    message.set_job(job_);
    message.set_epoch(epoch_);
    message.set_member(member_);
    outgoing_.push_back({exchange_->peers[static_cast<size_t>(out.to)].address().endpoint(), Lane::kPeer,
                         std::move(message), std::move(out.slice)});
  }
}

// Once everything has come.
void Worker::Conclude(Milliseconds now) {
  if (exchange_->over) return;
  if (exchange_->transfers->failed()) {
    // Perhaps by what was made here: the result says so, and then nothing is wrong with the others.
    if (exchange_->making) return;
    exchange_->failure = "values of another worker cannot be used";
  } else if (const Payload result = exchange_->transfers->result()) {
    exchange_->state = math_.Conclude(exchange_->plan, result, exchange_->with_history, exchange_->plan.from);
    if (exchange_->state) {
      exchange_->digest = DigestOf(*exchange_->state);
    } else {
      exchange_->failure = "the parameters that came of the round cannot be used: a number is not finite";
    }
  } else {
    return;
  }
  exchange_->over = true;
  SendHeartbeat(now);
}

}  // namespace crema
