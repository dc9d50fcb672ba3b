// Each worker makes one piece of every bucket of the result for all: a parameter server whose shards are the workers
// (Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014). The last bucket goes first:
// gradients are made from the last layers on.
#include "distributed/exchange/exchange_impl.h"

namespace crema {

namespace {

// Stage 2 b: a piece of bucket b of the sender's values, for the worker that makes something of it; stage 2 b + 1: what
// it made.
class ShardedExchange final : public ExchangeBase {
 public:
  ShardedExchange(ExchangePlan plan, Payload values, const ExchangeMath& math, int workers, int buckets,
                  uint64_t there_from)
      : ExchangeBase(std::move(plan), math, values->size(), buckets * workers),
        values_(std::move(values)),
        unsent_(buckets),
        buckets_(static_cast<size_t>(buckets), Bucket{std::vector<Payload>(static_cast<size_t>(workers)), workers}),
        results_(static_cast<size_t>(pieces())),
        results_missing_(Filled()) {
    if (results_missing_ == 0) {
      End(Concatenate({}));
    } else {
      math_.Begin(plan_);
      OnValues(there_from);
    }
  }

  uint32_t stages() const override { return 2 * static_cast<uint32_t>(buckets_.size()); }

  void OnValues(uint64_t there_from) override {
    while (!over() && unsent_ > 0 && cuts_[static_cast<size_t>(PieceOf(unsent_ - 1, 0))] >= there_from) {
      SendBucket(--unsent_);
    }
    if (unsent_ == 0) values_ = nullptr;
  }

 protected:
  bool Comes(int from, uint32_t stage) const override {
    return Makes(stage % 2 == 0 ? rank() : from, static_cast<int>(stage / 2));
  }

  void Take(int from, uint32_t stage, Payload payload) override {
    const int bucket = static_cast<int>(stage / 2);
    return stage % 2 == 0 ? TakePiece(bucket, from, std::move(payload)) : TakeResult(bucket, from, std::move(payload));
  }

 private:
  // This worker's piece of it, as all have it.
  struct Bucket {
    std::vector<Payload> pieces;  // by rank
    int missing;
  };

  int PieceOf(int bucket, int worker) const { return bucket * size() + worker; }
  bool Makes(int worker, int bucket) const { return BytesOf(PieceOf(bucket, worker)) > 0; }

  // Everybody begins with another worker, so that nobody gets all at once, and ends with itself.
  void SendBucket(int bucket) {
    for (int i = 1; i <= size(); ++i) {
      const int to = (rank() + i) % size();
      if (!Makes(to, bucket)) continue;
      const auto piece = static_cast<size_t>(PieceOf(bucket, to));
      Payload sent = math_.Piece(plan_, values_, cuts_[piece], cuts_[piece + 1]);
      if (!sent) return Fail();
      if (to == rank()) {
        TakePiece(bucket, to, std::move(sent));
      } else {
        Send(to, 2 * static_cast<uint32_t>(bucket), std::move(sent));
      }
    }
  }

  void TakePiece(int bucket, int from, Payload piece) {
    Bucket& own = buckets_[static_cast<size_t>(bucket)];
    own.pieces[static_cast<size_t>(from)] = std::move(piece);
    if (--own.missing > 0) return;
    const auto at = static_cast<size_t>(PieceOf(bucket, rank()));
    Payload made = math_.Combine(plan_, cuts_[at], cuts_[at + 1], own.pieces);
    own.pieces.clear();
    if (!made) return Fail();
    for (int i = 1; i < size(); ++i) Send((rank() + i) % size(), 2 * static_cast<uint32_t>(bucket) + 1, made);
    TakeResult(bucket, rank(), std::move(made));
  }

  void TakeResult(int bucket, int from, Payload result) {
    results_[static_cast<size_t>(PieceOf(bucket, from))] = std::move(result);
    if (--results_missing_ > 0) return;
    End(math_.Gather(plan_, cuts_, results_));
    results_.clear();
  }

  Payload values_;  // until all are sent
  int unsent_;      // of the buckets [0, unsent_) nothing is sent yet
  std::vector<Bucket> buckets_;
  std::vector<Payload> results_;  // by piece; null: not there, or there is none
  int results_missing_;
};

}  // namespace

std::unique_ptr<Exchange> MakeShardedExchange(ExchangePlan plan, Payload values, const ExchangeMath& math,
                                              uint64_t there_from) {
  const int workers = plan.size(), buckets = math.Buckets(values->size());
  return std::make_unique<ShardedExchange>(std::move(plan), std::move(values), math, workers, buckets, there_from);
}

}  // namespace crema
