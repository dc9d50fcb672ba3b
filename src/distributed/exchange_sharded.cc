// Each worker makes one piece of the result for all: a parameter server whose shards are the workers (Li et al.,
// "Scaling distributed machine learning with the parameter server", OSDI 2014).
#include "distributed/exchange_impl.h"

namespace crema {

namespace {

// Stage 0: a piece of the sender's values, for the worker that makes something of it; stage 1: what it made.
class ShardedExchange : public ExchangeBase {
 public:
  ShardedExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math)
      : ExchangeBase(std::move(plan), math, values->size(), plan.size()),
        pieces_(static_cast<size_t>(size())),
        results_(static_cast<size_t>(size())),
        results_missing_(Filled()),
        pieces_missing_(Makes(rank()) ? size() : 0) {
    std::vector<Payload> sent;
    if (results_missing_ == 0) {
      End(Join({}));
    } else if (sent = math_.Pieces(plan_, values, cuts_); sent.empty()) {
      Fail();
    }
    if (over()) return;
    // Everybody begins with another one, so that nobody gets all at once.
    for (int i = 1; i < size(); ++i) {
      const int to = (rank() + i) % size();
      if (Makes(to)) Send(to, 0, std::move(sent[static_cast<size_t>(to)]));
    }
    if (Makes(rank())) TakePiece(rank(), std::move(sent[static_cast<size_t>(rank())]));
  }

  uint32_t stages() const override { return 2; }

 protected:
  bool Comes(int from, uint32_t stage) const override { return Makes(stage == 0 ? rank() : from); }

  void Take(int from, uint32_t stage, Payload payload) override {
    return stage == 0 ? TakePiece(from, std::move(payload)) : TakeResult(from, std::move(payload));
  }

 private:
  bool Makes(int worker) const { return BytesOf(worker) > 0; }

  void TakePiece(int from, Payload piece) {
    pieces_[static_cast<size_t>(from)] = std::move(piece);
    if (--pieces_missing_ > 0) return;
    const auto own = static_cast<size_t>(rank());
    Payload made = math_.Combine(plan_, cuts_[own], cuts_[own + 1], pieces_);
    pieces_.clear();
    if (!made) return Fail();
    for (int i = 1; i < size(); ++i) Send((rank() + i) % size(), 1, made);
    TakeResult(rank(), std::move(made));
  }

  void TakeResult(int from, Payload result) {
    results_[static_cast<size_t>(from)] = std::move(result);
    if (--results_missing_ > 0) return;
    End(math_.Gather(plan_, cuts_, results_));
    results_.clear();
  }

  std::vector<Payload> pieces_;   // of this worker's part, by rank
  std::vector<Payload> results_;  // null: not there, or there is none
  int results_missing_, pieces_missing_;
};

}  // namespace

std::unique_ptr<Exchange> MakeShardedExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math) {
  return std::make_unique<ShardedExchange>(std::move(plan), values, math);
}

}  // namespace crema
