// Sums go up a binary tree of the ranks, and the whole sum comes down.
#include <algorithm>

#include "distributed/exchange/exchange_impl.h"

namespace crema {

namespace {

// Segments follow each other, so that all levels work at once: with k of them and a tree of depth d it takes (k + 2 d)
// / k times as long as one level's bytes. Smaller ones are not worth their messages, and of more the depth is hardly
// felt.
constexpr uint64_t kSegmentBytes = 1 << 20, kMostSegments = 256;

int SegmentsOf(uint64_t bytes) {
  return static_cast<int>(std::clamp<uint64_t>((bytes + kSegmentBytes - 1) / kSegmentBytes, 1, kMostSegments));
}

// Stage k is segment k, both ways. The children of r are 2 r + 1 and 2 r + 2.
class TreeExchange : public ExchangeBase {
 public:
  TreeExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math)
      : ExchangeBase(std::move(plan), math, values->size(), SegmentsOf(values->size())), missing_(Filled()) {
    const Payload term = Term(values);
    if (!term) return;
    std::vector<Payload> terms = CutUp(term);
    if (size() == 1 || missing_ == 0) {
      Finish(terms);
      return;
    }
    for (int child = 2 * rank() + 1; child <= 2 * rank() + 2 && child < size(); ++child) children_.push_back(child);
    sums_.assign(terms.size(), Concatenate({}));
    segments_.resize(terms.size());
    for (int k = 0; k < pieces(); ++k) {
      if (BytesOf(k) == 0) continue;
      Segment& segment = segments_[static_cast<size_t>(k)];
      segment.term = std::move(terms[static_cast<size_t>(k)]);
      segment.missing = static_cast<int>(children_.size());
      if (segment.missing == 0) Send(Parent(), static_cast<uint32_t>(k), std::move(segment.term));
    }
  }

  uint32_t stages() const override { return static_cast<uint32_t>(pieces()); }

 protected:
  bool Comes(int from, uint32_t stage) const override {
    const bool neighbor = from < rank() ? from == Parent() : (from - 1) / 2 == rank();
    return neighbor && BytesOf(static_cast<int>(stage)) > 0;
  }

  void Take(int from, uint32_t stage, Payload payload) override {
    if (payload->size() != BytesOf(static_cast<int>(stage))) return Fail();
    if (from < rank()) return Down(stage, std::move(payload));
    Segment& segment = segments_[stage];
    segment.sums[from - (2 * rank() + 1)] = std::move(payload);
    if (--segment.missing > 0) return;
    Payload sum = std::move(segment.term);
    for (Payload& below : segment.sums) {
      if (sum && below) sum = math_.Add(sum, below);
      below = nullptr;
    }
    if (!sum) return Fail();
    return rank() == 0 ? Down(stage, std::move(sum)) : Send(Parent(), stage, std::move(sum));
  }

 private:
  struct Segment {
    Payload term;
    Payload sums[2];  // of the children
    int missing = 0;  // of them
  };

  int Parent() const { return (rank() - 1) / 2; }

  void Down(uint32_t stage, Payload sum) {
    for (const int child : children_) Send(child, stage, sum);
    sums_[stage] = std::move(sum);
    if (--missing_ > 0) return;
    Finish(sums_);
    sums_.clear();
  }

  std::vector<int> children_;
  std::vector<Segment> segments_;
  std::vector<Payload> sums_;  // whole ones
  int missing_;                // of them
};

}  // namespace

std::unique_ptr<Exchange> MakeTreeExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math) {
  return std::make_unique<TreeExchange>(std::move(plan), values, math);
}

}  // namespace crema
