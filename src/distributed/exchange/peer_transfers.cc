#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "distributed/exchange/exchange.h"

namespace crema {

namespace {

constexpr Milliseconds kNever = std::numeric_limits<Milliseconds>::max();

ChunkReceived IAmHere() {
  ChunkReceived received;
  received.set_transfer(0);
  return received;
}

}  // namespace

struct PeerTransfers::Impl {
  struct Sending {
    TransferSender sender;
    uint64_t bytes = 0;
  };

  struct Peer {
    Peer(Milliseconds before_asking_again, std::shared_ptr<TransferPace> the_pace)
        : pace(the_pace ? std::move(the_pace) : std::make_shared<TransferPace>()), patience(before_asking_again) {}

    std::shared_ptr<TransferPace> pace;
    bool there = false;  // something was heard of it
    Milliseconds ask_at = 0, patience;
    std::deque<Exchange::Message> waiting;
    std::vector<Sending> sending;

    // Ends of the ones that are done.
    uint64_t BytesUnderWay() {
      std::erase_if(sending, [](const Sending& s) { return s.sender.done(); });
      uint64_t bytes = 0;
      for (const Sending& s : sending) bytes += s.bytes;
      return bytes;
    }
  };

  Impl(ExchangePlan plan, Payload values, const ExchangeMath& math, const TransferOptions& transfer_options,
       const PeerPaces& paces, uint64_t there_from)
      : options(transfer_options), most_bytes(math.most_piece_bytes()) {
    for (size_t i = 0; i < plan.examples.size(); ++i) {
      peers.emplace_back(options.patience, i < paces.size() ? paces[i] : nullptr);
    }
    exchange = MakeExchange(std::move(plan), std::move(values), math, there_from);
  }

  void Greet();
  Peer* At(int rank) {
    return rank < 0 || rank >= static_cast<int>(peers.size()) ? nullptr : &peers[static_cast<size_t>(rank)];
  }
  void SendReceived(int to, ChunkReceived received);
  void Ask(int to, Peer& peer, Milliseconds now);
  void OnChunk(int from, const Chunk& chunk, std::span<const std::byte> bytes);
  void OnChunkReceived(int from, const ChunkReceived& received, Milliseconds now);
  void Poll(Milliseconds now);
  void Start(Peer& peer, Milliseconds now);
  void GiveUp();

  const TransferOptions options;
  const uint64_t most_bytes;
  std::vector<Peer> peers;
  std::map<std::pair<int, uint32_t>, TransferReceiver> receivers;  // by sender and stage
  std::unique_ptr<Exchange> exchange;
  std::vector<Outgoing> outgoing;
  uint64_t bytes_received = 0, bytes_sent = 0, ignored = 0;
};

void PeerTransfers::Impl::Greet() {
  for (int from = 0; from < static_cast<int>(peers.size()); ++from) {
    if (exchange->ExpectsAny(from)) SendReceived(from, IAmHere());
  }
}

void PeerTransfers::Impl::SendReceived(int to, ChunkReceived received) {
  Outgoing& out = outgoing.emplace_back();
  out.to = to;
  *out.message.mutable_chunk_received() = std::move(received);
}

void PeerTransfers::Impl::Ask(int to, Peer& peer, Milliseconds now) {
  if (now < peer.ask_at) return;
  peer.ask_at = now + peer.patience;
  peer.patience = std::min<Milliseconds>(2 * peer.patience, 60'000);
  Outgoing& out = outgoing.emplace_back();
  out.to = to;
  out.message.mutable_chunk()->set_transfer(0);
  out.slice.payload = std::make_shared<Bytes>();
}

void PeerTransfers::Impl::OnChunk(int from, const Chunk& chunk, std::span<const std::byte> bytes) {
  Peer* const peer = At(from);
  if (peer && !exchange->failed() && chunk.transfer() == 0 && chunk.total() == 0 && bytes.empty()) {
    peer->there = true;
    return SendReceived(from, IAmHere());
  }
  if (exchange->failed() || chunk.transfer() == 0 || chunk.transfer() > exchange->stages() ||
      !exchange->Expects(from, static_cast<uint32_t>(chunk.transfer() - 1))) {
    ++ignored;
    return;
  }
  const auto stage = static_cast<uint32_t>(chunk.transfer() - 1);
  TransferReceiver& receiver = receivers.try_emplace({from, stage}, most_bytes).first->second;
  const uint64_t before = receiver.bytes_received();
  const auto answer = receiver.OnChunk(chunk, bytes);
  if (!answer) {
    ++ignored;
    return;
  }
  bytes_received += receiver.bytes_received() - before;
  peer->there = true;
  SendReceived(from, *answer);
  if (Payload whole = receiver.Whole(chunk.transfer())) {
    receiver.Release(chunk.transfer());
    exchange->OnMessage(from, stage, std::move(whole));
  }
}

void PeerTransfers::Impl::OnChunkReceived(int from, const ChunkReceived& received, Milliseconds now) {
  Peer* const peer = At(from);
  if (!peer || received.transfer() > exchange->stages()) {
    ++ignored;
    return;
  }
  peer->there = true;
  for (Sending& sending : peer->sending) sending.sender.OnReceived(received, now);
}

void PeerTransfers::Impl::Poll(Milliseconds now) {
  for (Exchange::Message& message : exchange->TakeMessages()) {
    peers[static_cast<size_t>(message.to)].waiting.push_back(std::move(message));
  }
  if (exchange->failed()) return GiveUp();
  for (size_t to = 0; to < peers.size(); ++to) {
    if (!peers[to].waiting.empty() && !peers[to].there) {
      Ask(static_cast<int>(to), peers[to], now);
      continue;
    }
    Start(peers[to], now);
    for (Sending& sending : peers[to].sending) {
      sending.sender.Poll(now, [&](Chunk chunk, Slice slice) {
        bytes_sent += slice.count;
        Outgoing& out = outgoing.emplace_back();
        out.to = static_cast<int>(to);
        *out.message.mutable_chunk() = std::move(chunk);
        out.slice = std::move(slice);
      });
    }
  }
}

// As much at once as one transfer may have on its way, and one transfer at least.
void PeerTransfers::Impl::Start(Peer& peer, Milliseconds now) {
  uint64_t bytes = peer.BytesUnderWay();
  const uint64_t most = options.chunk_bytes * peer.pace->chunks(options);
  while (!peer.waiting.empty() && (peer.sending.empty() || bytes < most)) {
    Exchange::Message message = std::move(peer.waiting.front());
    peer.waiting.pop_front();
    bytes += message.payload->size();
    Sending& sending = peer.sending.emplace_back(Sending{TransferSender(options, peer.pace), message.payload->size()});
    sending.sender.Start(uint64_t{message.stage} + 1, std::move(message.payload), now);
  }
}

void PeerTransfers::Impl::GiveUp() {
  for (Peer& peer : peers) {
    peer.waiting.clear();
    peer.sending.clear();
  }
  receivers.clear();
}

PeerTransfers::PeerTransfers(ExchangePlan plan, Payload values, const ExchangeMath& math,
                             const TransferOptions& options, Milliseconds now, const PeerPaces& paces,
                             uint64_t there_from)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(values), math, options, paces, there_from)) {
  impl_->Greet();
  impl_->Poll(now);
}

PeerTransfers::~PeerTransfers() = default;

void PeerTransfers::OnValues(uint64_t there_from, Milliseconds now) {
  impl_->exchange->OnValues(there_from);
  impl_->Poll(now);
}

void PeerTransfers::OnChunk(int from, const Chunk& chunk, std::span<const std::byte> bytes, Milliseconds now) {
  impl_->OnChunk(from, chunk, bytes);
  impl_->Poll(now);
}

void PeerTransfers::OnChunkReceived(int from, const ChunkReceived& received, Milliseconds now) {
  impl_->OnChunkReceived(from, received, now);
  impl_->Poll(now);
}

void PeerTransfers::Poll(Milliseconds now) { impl_->Poll(now); }

std::vector<PeerTransfers::Outgoing> PeerTransfers::TakeOutgoing() { return std::exchange(impl_->outgoing, {}); }

Milliseconds PeerTransfers::deadline() const {
  Milliseconds earliest = kNever;
  for (const Impl::Peer& peer : impl_->peers) {
    if (!peer.waiting.empty() && !peer.there) earliest = std::min(earliest, peer.ask_at);
    for (const Impl::Sending& sending : peer.sending) earliest = std::min(earliest, sending.sender.deadline());
  }
  return earliest;
}

Payload PeerTransfers::result() const { return impl_->exchange->result(); }
bool PeerTransfers::failed() const { return impl_->exchange->failed(); }
uint64_t PeerTransfers::bytes_received() const { return impl_->bytes_received; }
uint64_t PeerTransfers::bytes_sent() const { return impl_->bytes_sent; }
uint64_t PeerTransfers::ignored() const { return impl_->ignored; }

}  // namespace crema
