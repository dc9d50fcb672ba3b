#include "distributed/protocol/ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "base/random.h"

namespace crema {
namespace {

TEST(Ledger, GivesTheLowestUnusedSteps) {
  Ledger ledger;
  EXPECT_EQ(ledger.Take(10), (Steps{0, 10}));
  EXPECT_EQ(ledger.Take(5), (Steps{10, 5}));
  ledger.Return({0, 10});
  EXPECT_EQ(ledger.Take(4), (Steps{0, 4}));
  EXPECT_EQ(ledger.Take(10), (Steps{4, 6}));  // no more are in one piece
  EXPECT_EQ(ledger.Take(10), (Steps{15, 10}));
  EXPECT_EQ(ledger.next(), 25u);
}

TEST(Ledger, ReturnedNeighboursBecomeOnePiece) {
  Ledger ledger;
  for (int i = 0; i < 3; ++i) ledger.Take(10);
  ledger.Return({0, 10});
  ledger.Return({20, 10});
  ledger.Return({10, 10});
  EXPECT_EQ(ledger.unused(), (std::vector<Steps>{{0, 30}}));
  EXPECT_EQ(ledger.Take(30), (Steps{0, 30}));
}

TEST(Ledger, LeasedStepsAreUnusedUntilTheyAreUsed) {
  Ledger ledger;
  const Steps steps = ledger.Take(10);
  EXPECT_EQ(ledger.unused(), (std::vector<Steps>{{0, 10}}));
  EXPECT_EQ(ledger.leases(), 1u);
  ledger.Use(steps);
  EXPECT_TRUE(ledger.unused().empty());
  EXPECT_EQ(ledger.leases(), 0u);
}

TEST(Ledger, TakesTheseOnlyWhereAllAreUnused) {
  Ledger ledger(30, {{5, 10}});
  EXPECT_FALSE(ledger.TakeThese({4, 2}));
  EXPECT_FALSE(ledger.TakeThese({14, 2}));
  EXPECT_FALSE(ledger.TakeThese({28, 4}));
  EXPECT_FALSE(ledger.TakeThese({7, 0}));
  EXPECT_FALSE(ledger.TakeThese({UINT64_MAX - 1, 2}));
  EXPECT_EQ(ledger.unused(), (std::vector<Steps>{{5, 10}}));
  EXPECT_EQ(ledger.next(), 30u);
  EXPECT_TRUE(ledger.TakeThese({7, 3}));
  EXPECT_FALSE(ledger.TakeThese({7, 3}));
  EXPECT_TRUE(ledger.TakeThese({40, 5}));
  EXPECT_EQ(ledger.next(), 45u);
  EXPECT_EQ(ledger.Take(10), (Steps{5, 2}));
  EXPECT_EQ(ledger.Take(10), (Steps{10, 5}));
  EXPECT_EQ(ledger.Take(10), (Steps{30, 10}));
}

// As a lease may be that was made of two that came back, one of them from after the snapshot.
TEST(Ledger, TakesTheseAcrossWhatWasInPieces) {
  Ledger ledger(20, {{10, 5}, {15, 5}});
  EXPECT_TRUE(ledger.TakeThese({12, 6}));
  EXPECT_TRUE(ledger.TakeThese({18, 7}));
  EXPECT_EQ(ledger.next(), 25u);
  EXPECT_EQ(ledger.Take(10), (Steps{10, 2}));
  EXPECT_FALSE(ledger.TakeThese({24, 3}));
}

TEST(Ledger, RefusesUnusedStepsThatCannotBe) {
  EXPECT_THROW(Ledger(10, {{5, 6}}), std::invalid_argument);
  EXPECT_THROW(Ledger(10, {{5, 0}}), std::invalid_argument);
  EXPECT_THROW(Ledger(10, {{2, 4}, {5, 1}}), std::invalid_argument);
  EXPECT_THROW(Ledger(10, {{5, 1}, {2, 4}}), std::invalid_argument);
  EXPECT_THROW(Ledger(10, {{UINT64_MAX, 2}}), std::invalid_argument);
  EXPECT_NO_THROW(Ledger(10, {{6, 4}, {2, 4}}));
}

TEST(LedgerDeathTest, OnlyWholeLeasesComeBack) {
  Ledger ledger;
  ledger.Take(10);
  EXPECT_DEATH(ledger.Return({0, 5}), "no such lease");
  EXPECT_DEATH(ledger.Use({5, 5}), "no such lease");
}

// Against one flag per step.
TEST(Ledger, AgreesWithFlagsInRandomUse) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const RandomStream random(seed, 0);
    Ledger ledger;
    std::map<uint64_t, char> flags;  // 'l'eased, 'u'sed
    std::vector<Steps> leases;
    for (uint64_t i = 0; i < 400; ++i) {
      const uint64_t what = random.Below(3 * i, 4), where = random.Below(3 * i + 1, 1000);
      if (what == 0) {
        leases.push_back(ledger.Take(1 + where % 9));
        for (uint64_t s = leases.back().first; s < leases.back().end(); ++s) ASSERT_TRUE(flags.emplace(s, 'l').second);
      } else if (what == 1) {
        const Steps steps{where % 300, 1 + random.Below(3 * i + 2, 5)};
        bool free = true;
        for (uint64_t s = steps.first; s < steps.end(); ++s) free = free && flags.count(s) == 0;
        ASSERT_EQ(ledger.TakeThese(steps), free);
        if (!free) continue;
        leases.push_back(steps);
        for (uint64_t s = steps.first; s < steps.end(); ++s) flags[s] = 'l';
      } else if (!leases.empty()) {
        std::swap(leases[where % leases.size()], leases.back());
        const Steps steps = leases.back();
        leases.pop_back();
        what == 2 ? ledger.Use(steps) : ledger.Return(steps);
        for (uint64_t s = steps.first; s < steps.end(); ++s) {
          if (what == 2) flags[s] = 'u';
          if (what == 3) flags.erase(s);
        }
      }
      uint64_t unused = 0, used = 0;
      for (const Steps& steps : ledger.unused()) unused += steps.count;
      for (const auto& [step, flag] : flags) used += flag == 'u';
      ASSERT_EQ(unused + used, ledger.next());
      ASSERT_EQ(ledger.leases(), leases.size());
    }
  }
}

}  // namespace
}  // namespace crema
