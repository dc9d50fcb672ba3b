#include "distributed/exchange/exchange.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "base/random.h"
#include "distributed/exchange_math.h"

namespace crema {
namespace {

struct Parcel {
  int from = 0, to = 0;
  uint32_t stage = 0;
  Payload payload;
};

// Exchanges of all workers, and what is on its way between them.
class Group {
 public:
  Group(const ExchangePlan& plan, const std::vector<Payload>& values, const ExchangeMath& math)
      : Group(plan, values, std::vector<const ExchangeMath*>(values.size(), &math)) {}

  Group(ExchangePlan plan, const std::vector<Payload>& values, const std::vector<const ExchangeMath*>& maths)
      : sent_(values.size()) {
    for (size_t r = 0; r < values.size(); ++r) {
      plan.rank = static_cast<int>(r);
      exchanges_.push_back(MakeExchange(plan, values[r], *maths[r]));
    }
    for (size_t r = 0; r < values.size(); ++r) Collect(static_cast<int>(r));
  }

  // Delivers the letter `pick` chooses of so many, until there are none. `change` may alter them.
  void Run(const std::function<size_t(size_t)>& pick, const std::function<void(Parcel&)>& change = {}) {
    while (!way_.empty()) {
      const size_t i = pick(way_.size());
      Parcel letter = way_[i];
      way_.erase(way_.begin() + static_cast<std::ptrdiff_t>(i));
      if (change) change(letter);
      Deliver(letter);
    }
  }
  void RunInOrder(const std::function<void(Parcel&)>& change = {}) {
    Run([](size_t) { return 0; }, change);
  }
  void RunShuffled(uint64_t seed) {
    const RandomStream random(seed, 5);
    uint64_t drawn = 0;
    Run([&](size_t count) { return random.Below(drawn++, count); });
  }

  void Deliver(const Parcel& letter) {
    at(letter.to).OnMessage(letter.from, letter.stage, letter.payload);
    Collect(letter.to);
  }

  Exchange& at(int rank) { return *exchanges_[static_cast<size_t>(rank)]; }
  uint64_t sent(int rank) const { return sent_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(exchanges_.size()); }
  std::vector<Parcel>& way() { return way_; }
  size_t letters() const { return seen_.size(); }

 private:
  void Collect(int from) {
    for (Exchange::Message& message : at(from).TakeMessages()) {
      EXPECT_TRUE(message.payload);
      EXPECT_LT(message.stage, at(from).stages());
      EXPECT_TRUE(at(message.to).Expects(from, message.stage)) << from << " to " << message.to << " " << message.stage;
      EXPECT_TRUE(seen_.insert({from, message.to, message.stage}).second);
      sent_[static_cast<size_t>(from)] += message.payload->size();
      way_.push_back({from, message.to, message.stage, std::move(message.payload)});
    }
  }

  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<uint64_t> sent_;
  std::vector<Parcel> way_;
  std::set<std::tuple<int, int, uint32_t>> seen_;
};

Payload DirectMean(const ExchangePlan& plan, const std::vector<Payload>& values) {
  return FloatMath().Combine(plan, 0, values[0]->size(), values);
}

class ExchangeTest : public testing::TestWithParam<DistributedParameter::Topology> {};

TEST_P(ExchangeTest, AllGetTheMeanWhateverComesFirst) {
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 25}) {
    const ExchangePlan plan = PlanOf(GetParam(), n);
    for (const size_t count : {0u, 1u, 5u, 64u, 1000u}) {
      const std::vector<Payload> values = ValuesOf(plan, count);
      const Payload mean = DirectMean(plan, values);
      for (const auto cutting : {FloatMath::Cutting::kEven, FloatMath::Cutting::kSkewed}) {
        SCOPED_TRACE(testing::Message() << n << " workers, " << count << " values, " << static_cast<int>(cutting));
        const FloatMath math(count * sizeof(float), cutting);
        Payload first;
        for (uint64_t seed = 0; seed < 4; ++seed) {
          Group group(plan, values, math);
          group.RunShuffled(seed);
          size_t expected = 0;
          for (int r = 0; r < n; ++r) {
            ASSERT_FALSE(group.at(r).failed());
            ASSERT_TRUE(group.at(r).result()) << "worker " << r;
            if (!first) first = group.at(r).result();
            ASSERT_EQ(*group.at(r).result(), *first) << "worker " << r;
            for (int from = -1; from <= n; ++from) {
              for (uint32_t stage = 0; stage < group.at(r).stages() + 2; ++stage) {
                expected += group.at(r).Expects(from, stage);
              }
            }
          }
          ASSERT_EQ(group.letters(), expected);
        }
        if (GetParam() == DistributedParameter::SHARDED) {
          ASSERT_EQ(*first, *mean);
        } else {
          const std::vector<float> got = FloatsIn(first), wanted = FloatsIn(mean);
          ASSERT_EQ(got.size(), wanted.size());
          for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-6) << i;
        }
      }
    }
  }
}

TEST_P(ExchangeTest, IgnoresWhatCameBeforeAndWhatIsNotToCome) {
  for (const int n : {2, 3, 4, 7, 9}) {
    const ExchangePlan plan = PlanOf(GetParam(), n);
    const std::vector<Payload> values = ValuesOf(plan, 100);
    const FloatMath math;
    Group alone(plan, values, math);
    alone.RunInOrder();
    Group group(plan, values, math);
    const RandomStream random(static_cast<uint64_t>(n), 6);
    uint64_t drawn = 0;
    while (!group.way().empty()) {
      const Parcel letter = group.way()[random.Below(drawn++, group.way().size())];
      if (random.Below(drawn++, 3) == 0) {
        std::erase_if(group.way(), [&](const Parcel& l) {
          return l.from == letter.from && l.to == letter.to && l.stage == letter.stage;
        });
      }
      group.Deliver(letter);
      // Not of the right worker or stage, or another one in the place of the one that was there.
      group.Deliver({letter.from, letter.to, letter.stage, BytesOfFloats({1, 2})});
      group.Deliver({letter.to, letter.to, letter.stage, letter.payload});
      for (const int from : {-1, n, n + 7}) group.Deliver({from, letter.to, letter.stage, letter.payload});
      for (int from = 0; from < n; ++from) {
        for (uint32_t stage = 0; stage < group.at(letter.to).stages() + 2; ++stage) {
          if (!group.at(letter.to).Expects(from, stage)) group.Deliver({from, letter.to, stage, letter.payload});
        }
      }
    }
    for (int r = 0; r < n; ++r) {
      ASSERT_TRUE(group.at(r).result()) << n << " workers, " << r;
      EXPECT_EQ(*group.at(r).result(), *alone.at(r).result());
    }
  }
}

TEST_P(ExchangeTest, APieceOfAnotherLengthIsTheEndOfIt) {
  for (const int n : {2, 3, 4, 6, 9}) {
    const ExchangePlan plan = PlanOf(GetParam(), n);
    const std::vector<Payload> values = ValuesOf(plan, 90);
    const FloatMath math;
    Group right(plan, values, math);
    right.RunInOrder();
    const Payload result = right.at(0).result();
    for (size_t wrong = 0; wrong < right.letters(); ++wrong) {
      for (const int64_t longer : {-1000, -4, -1, 1, 4}) {
        Group group(plan, values, math);
        size_t delivered = 0;
        Parcel changed;
        group.RunInOrder([&](Parcel& letter) {
          if (delivered++ != wrong) return;
          auto payload = std::make_shared<Bytes>(*letter.payload);
          payload->resize(static_cast<size_t>(std::max<int64_t>(0, static_cast<int64_t>(payload->size()) + longer)));
          letter.payload = payload;
          changed = letter;
        });
        if (GetParam() == DistributedParameter::SHARDED && changed.stage == 1) {
          ASSERT_TRUE(group.at(changed.to).result());
          ASSERT_NE(*group.at(changed.to).result(), *result);
        } else {
          ASSERT_TRUE(group.at(changed.to).failed()) << n << " workers, message " << wrong << ", " << longer;
          ASSERT_FALSE(group.at(changed.to).result());
        }
        for (int r = 0; r < n; ++r) {
          if (r == changed.to) continue;
          ASSERT_FALSE(group.at(r).failed());
          if (group.at(r).result()) {
            ASSERT_EQ(*group.at(r).result(), *result);
          }
        }
      }
    }
  }
}

TEST_P(ExchangeTest, NothingComesOfItWhereMathHasNothing) {
  for (const int n : {1, 2, 3, 4, 6, 7}) {
    const ExchangePlan plan = PlanOf(GetParam(), n);
    const std::vector<Payload> values = ValuesOf(plan, 90);
    for (int bad = 0; bad < n; ++bad) {
      int calls = 1;
      for (int k = 0; k < calls; ++k) {
        const FloatMath good;
        FloatMath all, math;
        std::vector<const ExchangeMath*> maths(static_cast<size_t>(n), &good);
        maths[static_cast<size_t>(bad)] = &all;
        Group(plan, values, maths).RunInOrder();
        calls = all.calls();
        ASSERT_GT(calls, 0);
        maths[static_cast<size_t>(bad)] = &math;
        math.FailAfter(k);
        Group group(plan, values, maths);
        group.RunInOrder();
        ASSERT_TRUE(group.at(bad).failed()) << n << " workers, " << bad << ", call " << k;
        ASSERT_FALSE(group.at(bad).result());
        ASSERT_EQ(math.calls(), k);
        ASSERT_TRUE(group.at(bad).TakeMessages().empty());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, ExchangeTest, testing::ValuesIn(kTopologies),
                         [](const auto& info) { return DistributedParameter::Topology_Name(info.param); });

// What each worker sent.
std::vector<uint64_t> SentOf(const ExchangePlan& plan, size_t count, FloatMath::Cutting cutting) {
  const FloatMath math(count * sizeof(float), cutting);
  Group group(plan, ValuesOf(plan, count), math);
  group.RunShuffled(3);
  std::vector<uint64_t> sent;
  for (int r = 0; r < plan.size(); ++r) sent.push_back(group.sent(r));
  return sent;
}

// How long pieces are, in bytes; the one behind the last is the first.
struct Pieces {
  Pieces(size_t count, int pieces, FloatMath::Cutting cutting)
      : cuts(FloatMath(0, cutting).Cuts(count * sizeof(float), pieces)) {}

  uint64_t operator()(int piece) const {
    const size_t i = static_cast<size_t>(piece) % (cuts.size() - 1);
    return cuts[i + 1] - cuts[i];
  }

  std::vector<uint64_t> cuts;
};

TEST(ExchangeBytes, AreWhatTheFormulasSay) {
  for (const auto cutting : {FloatMath::Cutting::kEven, FloatMath::Cutting::kSkewed}) {
    for (const size_t count : {8u, 101u, 1024u}) {
      const uint64_t all = count * sizeof(float);
      for (const int n : {1, 2, 3, 4, 5, 8, 9, 16}) {
        SCOPED_TRACE(testing::Message() << n << " workers, " << count << " values");
        const Pieces piece(count, n, cutting);
        uint64_t sharded_sum = 0, ring_sum = 0, halving_sum = 0;
        const std::vector<uint64_t> sharded = SentOf(PlanOf(DistributedParameter::SHARDED, n), count, cutting),
                                    ring = SentOf(PlanOf(DistributedParameter::RING, n), count, cutting),
                                    tree = SentOf(PlanOf(DistributedParameter::TREE, n), count, cutting),
                                    halving = SentOf(PlanOf(DistributedParameter::HALVING, n), count, cutting);
        for (int r = 0; r < n; ++r) {
          const auto i = static_cast<size_t>(r);
          EXPECT_EQ(sharded[i], all - piece(r) + static_cast<uint64_t>(n - 1) * piece(r));
          EXPECT_EQ(ring[i], n == 1 ? 0 : 2 * all - piece(r + 1) - piece(r + 2));
          const int children = (2 * r + 1 < n) + (2 * r + 2 < n);
          EXPECT_EQ(tree[i], all * static_cast<uint64_t>(children + (r > 0)));
          if (std::has_single_bit(static_cast<unsigned>(n))) {
            uint64_t expected = all - piece(r);  // halves, then blocks of 1, 2, 4, ... pieces
            for (int width = 1; width < n; width *= 2) {
              for (int j = 0; j < width; ++j) expected += piece((r & ~(width - 1)) + j);
            }
            EXPECT_EQ(halving[i], expected);
          }
          sharded_sum += sharded[i];
          ring_sum += ring[i];
          halving_sum += halving[i];
        }
        const uint64_t least = 2 * all * static_cast<uint64_t>(n - 1);
        EXPECT_EQ(sharded_sum, least);
        EXPECT_EQ(ring_sum, least);
        const auto inner = static_cast<uint64_t>(std::bit_floor(static_cast<unsigned>(n)));
        EXPECT_EQ(halving_sum, 2 * all * (inner - 1) + 2 * all * (static_cast<uint64_t>(n) - inner));
      }
    }
  }
}

TEST(ExchangeBytes, AreTheSameForAllWherePiecesAre) {
  for (const auto topology :
       {DistributedParameter::SHARDED, DistributedParameter::RING, DistributedParameter::HALVING}) {
    for (const uint64_t sent : SentOf(PlanOf(topology, 8), 64, FloatMath::Cutting::kEven)) {
      EXPECT_EQ(sent, 2 * 64 * sizeof(float) * 7 / 8);
    }
  }
}

TEST(TreeExchange, SegmentsDoNotWaitForEachOther) {
  const size_t count = (3 << 18) + 1000;  // 3 MiB and a bit
  for (const int n : {2, 5, 8}) {
    const ExchangePlan plan = PlanOf(DistributedParameter::TREE, n);
    const std::vector<Payload> values = ValuesOf(plan, count);
    const FloatMath math;
    Group group(plan, values, math);
    ASSERT_EQ(group.at(0).stages(), 4u);
    // The first segment alone goes all the way up and down.
    size_t firsts = 0;
    for (size_t i = 0; i < group.way().size();) {
      const Parcel letter = group.way()[i];
      if (letter.stage != 0) {
        ++i;
        continue;
      }
      group.way().erase(group.way().begin() + static_cast<std::ptrdiff_t>(i));
      ++firsts;
      group.Deliver(letter);
      i = 0;
    }
    EXPECT_EQ(firsts, static_cast<size_t>(2 * (n - 1)));
    EXPECT_FALSE(group.at(0).result());
    group.RunShuffled(1);
    const std::vector<float> wanted = FloatsIn(DirectMean(plan, values));
    for (int r = 0; r < n; ++r) {
      ASSERT_TRUE(group.at(r).result());
      ASSERT_EQ(*group.at(r).result(), *group.at(0).result());
    }
    const std::vector<float> got = FloatsIn(group.at(0).result());
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-6) << i;
  }
}

}  // namespace
}  // namespace crema
