// Sums go once around a ring and grow, then once more as they are: Patarasuk and Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", JPDC 2009.
#include "distributed/exchange/exchange_impl.h"

namespace crema {

namespace {

// In stage t, 0 <= t < 2 (n - 1), worker r sends the piece r - t to worker r + 1, both modulo n. The sum of piece p
// begins at worker p, and is whole at worker p - 1 when stage n - 2 is over. A message needs nothing but the one of the
// stage before, so that they may come in any order.
class RingExchange : public ExchangeBase {
 public:
  RingExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math)
      : ExchangeBase(std::move(plan), math, values->size(), plan.size()), missing_(Filled()) {
    const Payload term = Term(values);
    if (!term) return;
    terms_ = CutUp(term);
    sums_.assign(static_cast<size_t>(size()), Concatenate({}));
    if (size() == 1 || missing_ == 0) {
      Finish(terms_);
    } else if (BytesOf(rank()) > 0) {
      Send(Next(), 0, std::move(terms_[static_cast<size_t>(rank())]));
    }
  }

  uint32_t stages() const override { return 2 * static_cast<uint32_t>(size() - 1); }

 protected:
  bool Comes(int from, uint32_t stage) const override { return Sends(from) && BytesOf(PieceOf(stage)) > 0; }
  bool Sends(int from) const override { return (from + 1) % size() == rank(); }

  void Take(int, uint32_t stage, Payload payload) override {
    const auto piece = static_cast<size_t>(PieceOf(stage));
    if (payload->size() != BytesOf(PieceOf(stage))) return Fail();
    const uint32_t growing = static_cast<uint32_t>(size() - 1);
    if (stage < growing) {
      payload = math_.Add(payload, terms_[piece]);
      terms_[piece] = nullptr;
      if (!payload) return Fail();
    }
    if (stage + 1 < stages()) Send(Next(), stage + 1, payload);
    if (stage + 1 < growing) return;
    sums_[piece] = std::move(payload);
    if (--missing_ > 0) return;
    Finish(sums_);
    sums_.clear();
  }

 private:
  int Next() const { return (rank() + 1) % size(); }
  // That comes in this stage.
  int PieceOf(uint32_t stage) const { return (rank() + 2 * size() - 1 - static_cast<int>(stage)) % size(); }

  std::vector<Payload> terms_, sums_;
  int missing_;  // sums
};

}  // namespace

std::unique_ptr<Exchange> MakeRingExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math) {
  return std::make_unique<RingExchange>(std::move(plan), values, math);
}

}  // namespace crema
