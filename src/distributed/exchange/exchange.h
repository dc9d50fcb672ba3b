// How workers make one result of what each of them has, among themselves: an all-reduce as a state machine. It knows
// neither sockets nor clocks, nor what the values mean.
#ifndef CREMA_DISTRIBUTED_EXCHANGE_EXCHANGE_H_
#define CREMA_DISTRIBUTED_EXCHANGE_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crema/distributed.pb.h"
#include "distributed/protocol/transfer.h"

namespace crema {

// Who takes part, the same for all but for `rank`.
struct ExchangePlan {
  DistributedParameter::Topology topology = DistributedParameter::SHARDED;
  int rank = 0;
  std::vector<uint64_t> examples = {};  // of each, by rank
  uint64_t iteration = 0, version = 0;  // that the round begins with
  Payload from = nullptr;               // the state of this version

  int size() const { return static_cast<int>(examples.size()); }
};

// What a piece of the values is. Pieces that come from others may be anything: where one cannot be used these return
// null, and nothing comes of the exchange.
class ExchangeMath {
 public:
  virtual ~ExchangeMath() = default;
  // Where values of so many bytes are cut into so many pieces: `pieces` + 1 offsets, the first 0, the last `bytes`.
  virtual std::vector<uint64_t> Cuts(uint64_t bytes, int pieces) const = 0;
  // Pieces, partial sums and results have at most so many bytes.
  virtual uint64_t most_piece_bytes() const = 0;

  // SHARDED. In how many buckets values of so many bytes travel: a bucket's pieces are sent when all of it is there.
  virtual int Buckets(uint64_t /*bytes*/) const { return 1; }
  // An exchange of one worker's values begins.
  virtual void Begin(const ExchangePlan& /*plan*/) const {}
  // What is sent of the piece [begin, end) of these values, once for each. Null where a value is not finite, or the
  // values cannot be used.
  virtual Payload Piece(const ExchangePlan& plan, const Payload& values, uint64_t begin, uint64_t end) const;
  // What comes of the piece [begin, end) of everybody's values, by rank. Nothing comes of empty pieces.
  virtual Payload Combine(const ExchangePlan& plan, uint64_t begin, uint64_t end,
                          std::span<const Payload> pieces) const = 0;
  // The result, of what came of each piece; null for empty ones.
  virtual Payload Gather(const ExchangePlan& plan, std::span<const uint64_t> cuts,
                         std::span<const Payload> combined) const;

  // RING, TREE, HALVING. One worker's values as a term of the sum, as long as they are.
  virtual Payload Term(const ExchangePlan& plan, const Payload& values) const = 0;
  // The sum of two pieces of sums of the same place, which are equally long, and as long as they are.
  virtual Payload Add(const Payload& a, const Payload& b) const = 0;
  // What comes of the sum of all terms; `sum` in pieces that lie behind each other. Where they end must not matter.
  virtual Payload Finish(const ExchangePlan& plan, std::span<const Payload> sum) const = 0;
};

// One worker's part. Everybody who takes part gets the same bytes, whatever comes first.
class Exchange {
 public:
  // Messages of one pair of workers, in one direction, are told apart by their `stage`.
  struct Message {
    int to = 0;
    uint32_t stage = 0;
    Payload payload;  // not null
  };

  virtual ~Exchange() = default;
  // More of this worker's own values is there: bytes from `there_from` on.
  virtual void OnValues(uint64_t /*there_from*/) {}
  // What is to be sent since the last call.
  virtual std::vector<Message> TakeMessages() = 0;
  // In any order. Ignores what is not to come, and what came before.
  virtual void OnMessage(int from, uint32_t stage, Payload payload) = 0;
  // Whether such a message is to come, or came.
  virtual bool Expects(int from, uint32_t stage) const = 0;
  // Whether any is, of whatever stage.
  virtual bool ExpectsAny(int from) const = 0;
  // What Gather or Finish returned; null until then.
  virtual Payload result() const = 0;
  // Nothing will come of it: math returned null, or a piece is not as long as it has to be.
  virtual bool failed() const = 0;
  // For all messages 0 <= stage < stages().
  virtual uint32_t stages() const = 0;
};

// Of the topologies but STAR. `math` must outlive it; everybody's values must be equally long. With SHARDED bytes
// before `there_from` may still be written, and are not looked at before Exchange::OnValues tells of them.
std::unique_ptr<Exchange> MakeExchange(ExchangePlan plan, Payload values, const ExchangeMath& math,
                                       uint64_t there_from = 0);

// An exchange over connections that lose and repeat what they carry: its messages as transfers, stage s as transfer
// s + 1. Workers begin at different times, and what comes to one before is lost: so nothing is sent to one that was not
// heard of. A ChunkReceived of transfer 0 says that somebody is there, at first to all from whom messages are to come;
// an empty Chunk of transfer 0 asks for it.
class PeerTransfers {
 public:
  // By rank; of ranks without one a pace begins with the exchange.
  using PeerPaces = std::vector<std::shared_ptr<TransferPace>>;
  struct Outgoing {
    int to = 0;
    ClusterMessage message;  // has a chunk or chunk_received, without the attempt
    Slice slice;
  };

  PeerTransfers(ExchangePlan plan, Payload values, const ExchangeMath& math, const TransferOptions& options,
                Milliseconds now, const PeerPaces& paces = {}, uint64_t there_from = 0);
  ~PeerTransfers();

  // What comes of these is due at once: no Poll is needed in between.
  void OnValues(uint64_t there_from, Milliseconds now);
  void OnChunk(int from, const Chunk& chunk, std::span<const std::byte> bytes, Milliseconds now);
  void OnChunkReceived(int from, const ChunkReceived& received, Milliseconds now);
  // Sends again what nobody answers.
  void Poll(Milliseconds now);
  // When Poll is to be called next though nothing came; far away if never.
  Milliseconds deadline() const;
  std::vector<Outgoing> TakeOutgoing();

  Payload result() const;
  bool failed() const;
  // Payload bytes that came, each counted once, and went, those sent again included.
  uint64_t bytes_received() const;
  uint64_t bytes_sent() const;
  // Chunks and answers that are of no transfer of this exchange, broken, or came after it failed.
  uint64_t ignored() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_EXCHANGE_EXCHANGE_H_
