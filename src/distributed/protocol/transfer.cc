#include "distributed/protocol/transfer.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "distributed/journal/digest.h"

namespace crema {

namespace {

uint32_t CheckOf(std::span<const std::byte> bytes) { return static_cast<uint32_t>(DigestOf(bytes)); }

}  // namespace

void TransferPace::OnAnswer(Milliseconds took, const TransferOptions& options) {
  least_ = std::min(least_, took);
  lately_ = std::max(took, (lately_ + took) / 2);
  const Milliseconds waited = took - least_, long_time = options.patience / 2;
  if (waited > long_time) {
    chunks_ = std::max<uint64_t>(1, chunks(options) / 2);
  } else if (waited <= long_time / 4) {
    chunks_ = std::min(2 * chunks_, options.credits);
  }
}

void TransferSender::Start(uint64_t id, Payload payload, Milliseconds now) {
  CREMA_CHECK(id > id_ && payload);
  id_ = id;
  payload_ = std::move(payload);
  sent_ = most_sent_ = received_ = 0;
  timed_.reset();
  done_ = false;
  empty_due_ = payload_->empty();
  moved_ = now;
  patience_ = pace_->Patience(options_);
}

void TransferSender::Cancel() { payload_ = nullptr; }

void TransferSender::OnReceived(const ChunkReceived& received, Milliseconds now) {
  if (!payload_ || received.transfer() != id_ || received.offset() > payload_->size()) return;
  if (timed_ && received.offset() >= timed_->end) {
    pace_->OnAnswer(now - timed_->at, options_);
    timed_.reset();
  }
  if (received.offset() > received_) {
    received_ = received.offset();
    sent_ = std::max(sent_, received_);
    moved_ = now;
    patience_ = pace_->Patience(options_);
  }
  if (received.offset() == payload_->size()) {
    payload_ = nullptr;
    done_ = true;
  }
}

void TransferSender::Poll(Milliseconds now, const Send& send) {
  if (!payload_) return;
  if (now - moved_ >= patience_) {
    sent_ = received_;
    empty_due_ = payload_->empty();
    moved_ = now;
    patience_ = std::min<Milliseconds>(2 * patience_, 60'000);
    pace_->OnSilence();
  }
  const uint64_t total = payload_->size();
  const uint64_t window = received_ + options_.chunk_bytes * pace_->chunks(options_);
  while (empty_due_ || (sent_ < total && sent_ < window)) {
    empty_due_ = false;
    const Slice slice{payload_, sent_, std::min(options_.chunk_bytes, total - sent_)};
    Chunk chunk;
    chunk.set_transfer(id_);
    chunk.set_offset(sent_);
    chunk.set_total(total);
    chunk.set_check(CheckOf(slice.bytes()));
    sent_ += slice.count;
    bytes_sent_ += slice.count;
    if (!timed_ && sent_ > most_sent_) timed_ = {sent_, now};
    most_sent_ = std::max(most_sent_, sent_);
    send(std::move(chunk), slice);
  }
}

Milliseconds TransferSender::deadline() const {
  return payload_ ? moved_ + patience_ : std::numeric_limits<Milliseconds>::max();
}

std::optional<ChunkReceived> TransferReceiver::OnChunk(const Chunk& chunk, std::span<const std::byte> bytes) {
  const bool sound = chunk.transfer() != 0 && chunk.total() <= most_ && chunk.offset() <= chunk.total() &&
                     bytes.size() <= chunk.total() - chunk.offset() && (!bytes.empty() || chunk.total() == 0) &&
                     chunk.check() == CheckOf(bytes);
  if (!sound || chunk.transfer() < id_ || (chunk.transfer() == id_ && chunk.total() != total_)) {
    ++refused_;
    return std::nullopt;
  }
  if (chunk.transfer() > id_) {
    id_ = chunk.transfer();
    total_ = chunk.total();
    received_ = 0;
    complete_ = false;
    bytes_ = std::make_shared<Bytes>();
  }
  // Grows as bytes come, so that announcing much takes no memory. Ones that came before, or too early, change nothing.
  if (!complete_ && chunk.offset() == received_) {
    if (bytes_->capacity() == 0) bytes_->reserve(std::min<uint64_t>(total_, uint64_t{64} << 20));
    bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
    received_ += bytes.size();
    bytes_received_ += bytes.size();
    complete_ = received_ == total_;
  }
  ChunkReceived answer;
  answer.set_transfer(id_);
  answer.set_offset(received_);
  return answer;
}

void TransferReceiver::Release(uint64_t id) {
  if (id == id_ && complete_) bytes_ = nullptr;
}

}  // namespace crema
