// Many bytes as chunks, over connections that may break: a sender that is never further ahead than it was allowed, and
// goes back to where the receiver stopped when nothing moves any more.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_TRANSFER_H_
#define CREMA_DISTRIBUTED_PROTOCOL_TRANSFER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "distributed/protocol/messages.pb.h"
#include "distributed/protocol/payload.h"

namespace crema {

// Milliseconds on a clock that never goes back.
using Milliseconds = int64_t;

struct TransferOptions {
  uint64_t chunk_bytes = 256 << 10;
  uint64_t credits = 16;          // chunks on their way at once, at most
  Milliseconds patience = 5'000;  // without a sign of progress, before chunks are sent again; doubles each time
};

// Bytes of a Payload that go behind a message.
struct Slice {
  Payload payload;  // null: none
  uint64_t offset = 0, count = 0;

  std::span<const std::byte> bytes() const { return {payload->data() + offset, static_cast<size_t>(count)}; }
};

// How many chunks may be on their way to one receiver, as long as there are transfers to it: few at first, twice as
// many when an answer came about as soon as ever, half of them when it took much longer. On a slow line more would hold
// up all that is said besides, signs of life too, and be sent again although they only wait.
class TransferPace {
 public:
  uint64_t chunks(const TransferOptions& options) const { return std::min(chunks_, options.credits); }
  // The time from sending a chunk to hearing that it came.
  void OnAnswer(Milliseconds took, const TransferOptions& options);
  // Nothing came within the patience.
  void OnSilence() { chunks_ = std::max<uint64_t>(1, chunks_ / 2); }
  // How long an answer may take: twice as long as the last ones did, and options.patience to six times that. After a
  // line was down it is soon what it was before.
  Milliseconds Patience(const TransferOptions& options) const {
    return std::clamp(2 * lately_, options.patience, 6 * options.patience);
  }

 private:
  uint64_t chunks_ = 2;
  Milliseconds least_ = std::numeric_limits<Milliseconds>::max();  // that an answer took
  Milliseconds lately_ = 0;                                        // that answers took, or longer
};

class TransferSender {
 public:
  using Send = std::function<void(Chunk chunk, Slice slice)>;

  // pace: of all transfers to the receiver; null for one of its own.
  explicit TransferSender(const TransferOptions& options, std::shared_ptr<TransferPace> pace = nullptr)
      : options_(options), pace_(pace ? std::move(pace) : std::make_shared<TransferPace>()) {}

  // For transfers that start from now on.
  void set_options(const TransferOptions& options) { options_ = options; }
  // Sends this instead of whatever was under way. Ids must grow. An empty payload is one empty chunk.
  void Start(uint64_t id, Payload payload, Milliseconds now);
  void Cancel();
  // Ignores what is of another transfer or makes no sense.
  void OnReceived(const ChunkReceived& received, Milliseconds now);
  // Gives `send` the chunks that may go now.
  void Poll(Milliseconds now, const Send& send);

  uint64_t id() const { return id_; }
  bool active() const { return payload_ != nullptr; }
  // The receiver has all of it.
  bool done() const { return done_; }
  // When Poll is to be called next though nothing came; far away if never.
  Milliseconds deadline() const;
  // Payload bytes sent in chunks, again and again included.
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  // The end of a chunk, and when it was sent for the first time: its answer is timed, also where it was sent again.
  struct Timed {
    uint64_t end;
    Milliseconds at;
  };

  TransferOptions options_;
  std::shared_ptr<TransferPace> pace_;
  uint64_t id_ = 0, sent_ = 0, most_sent_ = 0, received_ = 0, bytes_sent_ = 0;
  std::optional<Timed> timed_;
  bool empty_due_ = false, done_ = false;
  Payload payload_;
  Milliseconds moved_ = 0, patience_ = 0;
};

class TransferReceiver {
 public:
  // Transfers of more bytes than this are refused.
  explicit TransferReceiver(uint64_t most) : most_(most) {}

  // Takes a chunk with its bytes; what to answer, or none where it is of an older transfer or no chunk of one that can
  // be: those are counted. A chunk of a newer transfer ends the older one.
  std::optional<ChunkReceived> OnChunk(const Chunk& chunk, std::span<const std::byte> bytes);

  // The whole of transfer `id`; null until it is there. Remains until a newer one begins.
  Payload Whole(uint64_t id) const { return id == id_ && complete_ ? bytes_ : nullptr; }
  // Forgets the bytes of a whole transfer.
  void Release(uint64_t id);
  // Ids begin anew: what comes is from another sender.
  void Forget() {
    id_ = received_ = total_ = 0;
    complete_ = false;
    bytes_ = nullptr;
  }
  void set_most(uint64_t most) { most_ = most; }

  uint64_t refused() const { return refused_; }
  uint64_t bytes_received() const { return bytes_received_; }

 private:
  uint64_t most_, id_ = 0, received_ = 0, total_ = 0, refused_ = 0, bytes_received_ = 0;
  bool complete_ = false;
  std::shared_ptr<Bytes> bytes_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_TRANSFER_H_
