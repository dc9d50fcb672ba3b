// What is not finite, cut or of another size takes no part in a round.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "distributed/averaged_rounds.h"
#include "distributed/averaging/peer_averaging.h"

namespace crema {
namespace {

class SpoiledPieces : public testing::Test {
 protected:
  SpoiledPieces() {
    settings_.set_topology(DistributedParameter::SHARDED);
    settings_.set_outer_momentum(0.5f);
    layout_ = LayoutWith(settings_, 400, true, true);
    round_ = WorkersWith(layout_, 3, 5, true);
    state_ = PayloadOf(RandomFloats(9, layout_.state_bytes(false) / sizeof(float)));
  }
  // With one value changed.
  static Payload With(const Payload& values, int64_t at, float value) {
    std::vector<float> floats = Floats(values);
    floats[static_cast<size_t>(at)] = value;
    return PayloadOf(floats);
  }
  static Payload Shorter(const Payload& values, uint64_t by) { return PieceOf(values, 0, values->size() - by); }
  // A trained value, a mean, a factor, and a history.
  std::vector<int64_t> Places() const { return {0, 399, 400, 440, layout_.values, layout_.values + 399}; }

  DistributedParameter settings_;
  StateLayout layout_;
  RoundOfWorkers round_;
  Payload state_;
  const std::vector<float> bad_ = {NAN, -NAN, INFINITY, -INFINITY};
};

TEST_F(SpoiledPieces, AreNotOffered) {
  LocalMoves moves(settings_, layout_);
  const Payload& values = round_.values[0];
  EXPECT_EQ(moves.Offer(values, true), values);
  const Payload without = moves.Offer(values, false);
  ASSERT_TRUE(without);
  EXPECT_TRUE(*without == *PieceOf(values, 0, layout_.bytes(false)));
  EXPECT_EQ(moves.Offer(without, false), without);
  EXPECT_FALSE(moves.Offer(without, true));
  EXPECT_FALSE(moves.Offer(Shorter(values, 4), true));
  EXPECT_FALSE(moves.Offer(nullptr, false));
  for (const float bad : bad_) {
    for (const int64_t at : Places()) {
      EXPECT_FALSE(moves.Offer(With(values, at, bad), true)) << at;
      EXPECT_EQ(moves.Offer(With(values, at, bad), false) != nullptr, at >= layout_.values) << at;
    }
  }
  settings_.set_topology(DistributedParameter::STAR);
  layout_.velocity = 0;
  EXPECT_EQ(LocalMoves(settings_, layout_).exchange(), nullptr);
}

TEST_F(SpoiledPieces, AreNotCombined) {
  const PeerAveraging math(settings_, layout_);
  const ExchangePlan& plan = round_.plan;
  const uint64_t bytes = layout_.bytes(true), statistics = static_cast<uint64_t>(layout_.trained) * 4;
  ASSERT_TRUE(math.Combine(plan, 0, bytes, round_.values));
  for (size_t who = 0; who < 3; ++who) {
    std::vector<Payload> values = round_.values;
    for (const int64_t at : Places()) {
      for (const float bad : bad_) {
        values[who] = With(round_.values[who], at, bad);
        EXPECT_FALSE(math.Combine(plan, 0, bytes, values)) << at;
      }
    }
    for (const Payload& wrong : {Shorter(round_.values[who], 4), Shorter(round_.values[who], 1),
                                 Joined({round_.values[who], PayloadOf({1})}), Payload()}) {
      values[who] = wrong;
      EXPECT_FALSE(math.Combine(plan, 0, bytes, values));
    }
  }
  const auto cut = [&](uint64_t begin, uint64_t end) {
    std::vector<Payload> pieces;
    for (const Payload& values : round_.values) pieces.push_back(PieceOf(values, begin, end));
    return pieces;
  };
  EXPECT_TRUE(math.Combine(plan, 64, 64, cut(64, 64)));
  EXPECT_TRUE(math.Combine(plan, statistics, layout_.bytes(false), cut(statistics, layout_.bytes(false))));
  EXPECT_FALSE(math.Combine(plan, 64, statistics + 4, cut(64, statistics + 4)));
  EXPECT_FALSE(math.Combine(plan, statistics + 4, bytes, cut(statistics + 4, bytes)));
  EXPECT_FALSE(math.Combine(plan, 2, 66, cut(2, 66)));
  EXPECT_FALSE(math.Combine(plan, bytes, bytes + 4, std::vector<Payload>(3, PayloadOf({1}))));
  EXPECT_FALSE(math.Combine(plan, 0, bytes, std::span(round_.values).first(2)));
  EXPECT_FALSE(math.Combine({.examples = {1, 0, 1}}, 0, bytes, round_.values));
  EXPECT_FALSE(math.Combine({}, 0, bytes, {}));
}

TEST_F(SpoiledPieces, AreNotAdded) {
  const PeerAveraging math(settings_, layout_);
  ExchangePlan plan = round_.plan;
  const Payload& values = round_.values[0];
  for (const int64_t at : Places()) {
    for (const float bad : bad_) {
      const Payload spoiled = With(values, at, bad);
      EXPECT_FALSE(math.Term(plan, spoiled)) << at;
      EXPECT_FALSE(math.Add(values, spoiled)) << at;
      EXPECT_FALSE(math.Add(spoiled, spoiled)) << at;
      EXPECT_FALSE(math.Finish(plan, std::vector<Payload>{spoiled})) << at;
      EXPECT_FALSE(math.Conclude(plan, spoiled, true, state_)) << at;
    }
  }
  for (const Payload& wrong : {Shorter(values, 4), Shorter(values, 1), Joined({values, PayloadOf({1})}), Payload()}) {
    EXPECT_FALSE(math.Term(plan, wrong));
    EXPECT_FALSE(math.Add(values, wrong));
    EXPECT_FALSE(math.Add(wrong, values));
    EXPECT_FALSE(math.Finish(plan, std::vector<Payload>{wrong}));
    EXPECT_FALSE(math.Conclude(plan, wrong, true, state_));
  }
  EXPECT_FALSE(math.Add(Shorter(values, 1), Shorter(values, 1)));
  const Payload much = Joined({values, values});
  EXPECT_FALSE(math.Add(much, much));
  const Payload most = PayloadOf({std::numeric_limits<float>::max()});
  EXPECT_FALSE(math.Add(most, most));
  EXPECT_FALSE(math.Finish(plan, {}));
  plan.rank = 3;
  EXPECT_FALSE(math.Term(plan, values));
  plan.rank = 0;
  EXPECT_TRUE(math.Term(plan, values));
  EXPECT_TRUE(math.Finish(plan, std::vector<Payload>{values}));
  EXPECT_TRUE(math.Conclude(plan, values, true, state_));
  EXPECT_FALSE(math.Conclude(plan, values, false, state_));
  EXPECT_FALSE(math.Conclude({}, values, true, state_));
  EXPECT_FALSE(math.Conclude(plan, values, true, nullptr));
  EXPECT_FALSE(math.Conclude(plan, values, true, Shorter(state_, 4)));
  // The momentum alone grew beyond all numbers.
  EXPECT_FALSE(math.Conclude(plan, values, true, With(state_, layout_.velocity_in_state(), INFINITY)));
}

}  // namespace
}  // namespace crema
