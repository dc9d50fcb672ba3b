// Recursive halving, then recursive doubling: Thakur, Rabenseifner and Gropp, "Optimization of collective communication
// operations in MPICH", IJHPCA 2005.
#include <bit>

#include "distributed/exchange/exchange_impl.h"

namespace crema {

namespace {

// 2^L workers, the most that there are, take part in the stages 1 to 2 L. Each of the others gives its term to one of
// them in stage 0 and gets the sum in stage 2 L + 1.
//
// A block of w pieces begins at a multiple of w. In halving two workers that are w apart have the sum of a block of 2
// w, of some workers each; each sends the other the half where that one's own piece is. In doubling they exchange the
// blocks of w that they have the whole sum of.
class HalvingExchange : public ExchangeBase {
 public:
  HalvingExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math)
      : ExchangeBase(std::move(plan), math, values->size(), static_cast<int>(std::bit_floor(plan.examples.size()))),
        inner_(pieces()),
        levels_(static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>(inner_))) - 1),
        waiting_(stages()) {
    Payload term = Term(values);
    if (!term) return;
    if (rank() < inner_) {
      sums_ = {std::move(term)};
      Advance();
    } else if (term->empty()) {
      Finish({&term, 1});
    } else {
      Send(rank() - inner_, 0, std::move(term));
    }
  }

  uint32_t stages() const override { return 2 * levels_ + 2; }

 protected:
  bool Comes(int from, uint32_t stage) const override {
    const bool partner =
        rank() >= inner_ ? stage == last() && from == rank() - inner_ : stage != last() && from == Partner(stage);
    return partner && BytesIn(stage) > 0;
  }

  void Take(int, uint32_t stage, Payload payload) override {
    if (payload->size() != BytesIn(stage)) return Fail();
    if (rank() >= inner_) return Finish({&payload, 1});
    waiting_[stage] = std::move(payload);
    Advance();
  }

 private:
  uint32_t last() const { return stages() - 1; }
  bool Outer(uint32_t stage) const { return stage == 0 || stage == last(); }
  bool Halves(uint32_t stage) const { return stage <= levels_; }
  int Width(uint32_t stage) const { return Halves(stage) ? inner_ >> stage : 1 << (stage - levels_ - 1); }
  // Of a worker that is inside.
  int Partner(uint32_t stage) const { return Outer(stage) ? rank() + inner_ : rank() ^ Width(stage); }
  // The first piece of this worker's block in a stage, and of the one that it exchanges it with.
  int Own(uint32_t stage) const { return rank() & ~(Width(stage) - 1); }
  int Other(uint32_t stage) const { return Own(stage) ^ Width(stage); }

  uint64_t BytesIn(uint32_t stage) const {
    if (Outer(stage)) return cuts_.back();
    const int first = Halves(stage) ? Own(stage) : Other(stage);
    return BytesOf(first, first + Width(stage));
  }

  // Goes on as far as it can with what came.
  void Advance() {
    while (!over()) {
      if (!begun_) Begin();
      begun_ = true;
      if (stage_ == last()) {
        Finish(sums_);
        sums_.clear();
        return;
      }
      const int from = Partner(stage_);
      if (Expects(from, stage_)) {
        if (!waiting_[stage_]) return;
        Use(from, std::move(waiting_[stage_]));
      }
      ++stage_;
      begun_ = false;
    }
  }

  // Sends what others wait for in this stage.
  void Begin() {
    if (stage_ == 0) return;
    if (stage_ == last()) {
      if (Partner(last()) < size() && cuts_.back() > 0) Send(Partner(last()), last(), Concatenate(sums_));
      return;
    }
    const int to = Partner(stage_);
    if (!Halves(stage_)) {
      sums_ = {Concatenate(sums_)};
      if (!sums_[0]->empty()) Send(to, stage_, sums_[0]);
      return;
    }
    const auto half = [&](int first) {
      const uint64_t skip = BytesOf(std::min(Own(stage_), Other(stage_)), first);
      return Part(sums_[0], skip, skip + BytesOf(first, first + Width(stage_)));
    };
    if (Payload given = half(Other(stage_)); !given->empty()) Send(to, stage_, std::move(given));
    sums_ = {half(Own(stage_))};
  }

  void Use(int from, Payload payload) {
    if (!Halves(stage_)) {
      sums_.insert(from < rank() ? sums_.begin() : sums_.end(), std::move(payload));
      return;
    }
    // In the order of ranks, so that the term of a worker that is not inside follows the one it was given to.
    Payload& sum = sums_[0];
    sum = from < rank() ? math_.Add(payload, sum) : math_.Add(sum, payload);
    if (!sum) Fail();
  }

  const int inner_;  // 2^L
  const uint32_t levels_;
  uint32_t stage_ = 0;
  bool begun_ = false;
  std::vector<Payload> waiting_;  // by stage
  std::vector<Payload> sums_;     // of the pieces that it has, behind each other
};

}  // namespace

std::unique_ptr<Exchange> MakeHalvingExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math) {
  return std::make_unique<HalvingExchange>(std::move(plan), values, math);
}

}  // namespace crema
