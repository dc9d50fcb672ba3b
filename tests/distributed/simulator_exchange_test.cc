// Rounds among workers, who alone have the state after them, and training ahead, on machines that do not exist.
#include <gtest/gtest.h>

#include "distributed/simulated_rounds.h"

namespace crema {
namespace {

using testing_distributed::TenRounds;
using testing_distributed::WithFault;

SimulatorOptions Sharded() {
  SimulatorOptions options = TenRounds();
  options.coordinator.topology = DistributedParameter::SHARDED;
  return options;
}

TEST(SimulatedExchange, EveryRoundIsAmongWorkers) {
  const SimulatorReport report = Simulate(Sharded());
  EXPECT_EQ(report.violation, "") << report.log;
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 10u);
  EXPECT_EQ(report.exchanged, 10u);
  EXPECT_EQ(report.exchanges_given_up + report.lost, 0u);
}

TEST(SimulatedExchange, WhatOnlyTheDeadKnewIsTrainedAgain) {
  const SimulatorReport report =
      WithFault(Sharded(), {.kind = Fault::Kind::kKillWorkers, .at = 9000, .lasts = 20'000, .first = 0, .count = 4});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.lost, 1u) << report.log;
  EXPECT_EQ(report.rolled_back, 1u) << report.log;
  EXPECT_GT(report.commits, 10u);
  EXPECT_EQ(report.coordinators, 1u);
}

TEST(SimulatedExchange, WhatWasKeptIsNotTrainedAgain) {
  SimulatorOptions options = Sharded();
  options.coordinator.keep_rounds = 1;
  const SimulatorReport report =
      WithFault(options, {.kind = Fault::Kind::kKillWorkers, .at = 9000, .lasts = 20'000, .first = 0, .count = 4});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.lost + report.rolled_back, 0u) << report.log;
  EXPECT_EQ(report.commits, 10u);
}

// One whose line was down still has what those lost who are gone; who comes first is a stranger to it.
TEST(SimulatedExchange, OneWhoComesBackBringsWhatTheOthersLost) {
  SimulatorOptions options = Sharded();
  options.faults.push_back({.kind = Fault::Kind::kKillWorkers, .at = 9000, .lasts = 12'000, .first = 1, .count = 3});
  const SimulatorReport report =
      WithFault(options, {.kind = Fault::Kind::kCut, .at = 9000, .lasts = 30'000, .first = 0, .detail = 3});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.lost, 1u) << report.log;
  EXPECT_EQ(report.recovered, 1u) << report.log;
  EXPECT_EQ(report.rolled_back, 0u);
  EXPECT_EQ(report.commits, 10u);
}

TEST(SimulatedExchange, AMemberThatDiesInItIsLeftOut) {
  for (Milliseconds at = 8000; at < 10'200; at += 100) {
    const SimulatorReport report =
        WithFault(Sharded(), {.kind = Fault::Kind::kKillWorkers, .at = at, .lasts = 5000, .first = 2});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.commits, 10u);
    EXPECT_EQ(report.lost, 0u);
  }
}

TEST(SimulatedExchange, WhereWorkersCannotReachEachOtherTheCoordinatorDoesIt) {
  for (const int lost : {0, 1}) {
    const SimulatorReport report =
        WithFault(Sharded(), {.kind = Fault::Kind::kSplit, .at = 9000, .lasts = 200'000, .first = 1, .detail = !lost});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.commits, 10u);
    EXPECT_EQ(report.exchanges_given_up, 1u) << report.log;
    EXPECT_LT(report.coordinator_ended, 9000 + 60'000);
  }
}

TEST(SimulatedExchange, AtTheEndTheStateIsHere) {
  for (const Fault::Kind kind : {Fault::Kind::kStop, Fault::Kind::kDrain}) {
    const SimulatorReport report = WithFault(Sharded(), {.kind = kind, .at = 9000});
    EXPECT_FALSE(report.completed);
    EXPECT_GT(report.version, 1u);
    EXPECT_EQ(report.lost, 0u);
    EXPECT_LT(report.coordinator_ended, 9000 + 5000);
  }
}

TEST(SimulatedExchange, ARestartedCoordinatorGetsTheStateBack) {
  for (const int point : {Fault::kNow, Fault::kBeforeJournal, Fault::kAfterJournal, Fault::kWhileSending}) {
    const SimulatorReport report =
        WithFault(Sharded(), {.kind = Fault::Kind::kKillCoordinator, .at = 9000, .lasts = 3000, .detail = point});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.coordinators, 2u);
    EXPECT_EQ(report.recovered, 1u) << report.log;
    EXPECT_EQ(report.rolled_back, 0u);
  }
}

// Each round is one step of each, and one update that all make alike.
SimulatorOptions ShardedGradients() {
  SimulatorOptions options = Sharded();
  options.gradients = true;
  options.coordinator.local_steps = 1;
  options.coordinator.max_iter = 40;
  options.coordinator.keep_rounds = 15;
  options.step = 500;
  return options;
}

TEST(SimulatedGradients, EveryUpdateIsMadeOnceByAll) {
  const SimulatorReport report = Simulate(ShardedGradients());
  EXPECT_EQ(report.violation, "") << report.log;
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 40u);
  EXPECT_EQ(report.exchanged, 40u);
}

TEST(SimulatedGradients, AMemberThatDiesInTheExchangeIsLeftOut) {
  for (Milliseconds at = 8000; at < 9200; at += 30) {
    const SimulatorReport report =
        WithFault(ShardedGradients(), {.kind = Fault::Kind::kKillWorkers, .at = at, .lasts = 5000, .first = 2});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.commits, 40u);
    EXPECT_EQ(report.lost, 0u);
  }
}

TEST(SimulatedGradients, ARestartedCoordinatorGetsTheStateBack) {
  for (const int point : {Fault::kNow, Fault::kBeforeJournal, Fault::kAfterJournal, Fault::kWhileSending}) {
    const SimulatorReport report = WithFault(
        ShardedGradients(), {.kind = Fault::Kind::kKillCoordinator, .at = 9000, .lasts = 3000, .detail = point});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.coordinators, 2u);
    EXPECT_EQ(report.recovered, 1u) << report.log;
    EXPECT_EQ(report.rolled_back, 0u);
    // Of one that nobody heard of workers have the state: they made it.
    EXPECT_EQ(report.commits, 40u);
  }
}

TEST(SimulatedGradients, WhatOnlyTheDeadKnewIsTrainedAgain) {
  const SimulatorReport report = WithFault(
      ShardedGradients(), {.kind = Fault::Kind::kKillWorkers, .at = 15'000, .lasts = 20'000, .first = 0, .count = 4});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.lost, 1u) << report.log;
  EXPECT_EQ(report.rolled_back, 1u) << report.log;
  EXPECT_GT(report.commits, 40u);
}

TEST(SimulatedGradients, WhereWorkersCannotReachEachOtherTheCoordinatorUpdates) {
  const SimulatorReport report = WithFault(
      ShardedGradients(), {.kind = Fault::Kind::kSplit, .at = 9000, .lasts = 200'000, .first = 1, .detail = 1});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 40u);
  EXPECT_GE(report.exchanges_given_up, 1u) << report.log;
  EXPECT_GT(report.exchanged, 5u);
  EXPECT_LT(report.exchanged, 40u);
}

// Promised, and exchanged word by word while the rest is made.
SimulatorOptions Backward() {
  SimulatorOptions options = ShardedGradients();
  options.backward = true;
  return options;
}

TEST(SimulatedBackward, EveryRoundBeginsEarly) {
  const SimulatorReport report = Simulate(Backward());
  EXPECT_EQ(report.violation, "") << report.log;
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 40u);
  EXPECT_EQ(report.early, 40u);
  EXPECT_EQ(report.exchanges_given_up, 0u);
}

TEST(SimulatedBackward, AMemberThatDiesMeanwhileIsLeftOut) {
  for (Milliseconds at = 8000; at < 9200; at += 30) {
    const SimulatorReport report =
        WithFault(Backward(), {.kind = Fault::Kind::kKillWorkers, .at = at, .lasts = 5000, .first = 2});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.commits, 40u);
    EXPECT_EQ(report.lost, 0u);
    EXPECT_GT(report.early, 30u);
  }
}

TEST(SimulatedBackward, AMemberWhoseLineWasDownComesBack) {
  for (Milliseconds at = 8000; at < 9200; at += 60) {
    const SimulatorReport report =
        WithFault(Backward(), {.kind = Fault::Kind::kCut, .at = at, .lasts = 15'000, .first = 2, .detail = 3});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.commits, 40u);
  }
}

TEST(SimulatedBackward, ARestartedCoordinatorGetsTheStateBack) {
  for (const int point : {Fault::kNow, Fault::kBeforeJournal, Fault::kAfterJournal, Fault::kWhileSending}) {
    const SimulatorReport report =
        WithFault(Backward(), {.kind = Fault::Kind::kKillCoordinator, .at = 9000, .lasts = 3000, .detail = point});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.recovered, 1u) << report.log;
    EXPECT_EQ(report.rolled_back, 0u);
  }
}

TEST(SimulatedBackward, WhatIsNotFiniteIsLeftOut) {
  SimulatorOptions options = Backward();
  options.failures = 30;
  options.healed = 1'000'000;
  const SimulatorReport report = Simulate(options);
  EXPECT_EQ(report.violation, "") << report.log;
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 40u);
  EXPECT_EQ(report.exchanges_given_up, 0u);
}

TEST(SimulatedBackward, WhereWorkersCannotReachEachOtherTheCoordinatorUpdates) {
  const SimulatorReport report =
      WithFault(Backward(), {.kind = Fault::Kind::kSplit, .at = 9000, .lasts = 200'000, .first = 1, .detail = 1});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 40u);
  EXPECT_GE(report.exchanges_given_up, 1u) << report.log;
}

// 100 KB/s, and 16 KB of gradients in steps of half a second, of which two thirds make them.
TEST(SimulatedBackward, HidesTheNetworksTime) {
  Milliseconds took[2];
  for (const bool backward : {false, true}) {
    SimulatorOptions options = ShardedGradients();
    options.words = 2000;
    options.coordinator.most_push_bytes = 40'000;
    options.coordinator.transfer.chunk_bytes = 500;
    options.bytes_per_second = 100'000;
    options.spread = 0;
    options.backward = backward;
    const SimulatorReport report = Simulate(options);
    EXPECT_EQ(report.violation, "") << report.log;
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.commits, 40u);
    took[backward] = report.coordinator_ended;
  }
  EXPECT_LT(took[1], took[0] - 40 * 60);
}

// 100 KB/s and states of 2 KB: everybody's values take a tenth of the steps' time through the coordinator.
TEST(SimulatedOverlap, HidesTheNetworksTime) {
  for (const auto topology : {DistributedParameter::STAR, DistributedParameter::SHARDED}) {
    Milliseconds took[2];
    for (const bool ahead : {false, true}) {
      SimulatorOptions options = TenRounds();
      options.words = 2000;
      options.coordinator.most_push_bytes = 40'000;
      options.coordinator.transfer.chunk_bytes = 2000;
      options.bytes_per_second = 100'000;
      options.spread = 0;
      options.coordinator.topology = topology;
      options.coordinator.train_ahead = ahead;
      const SimulatorReport report = Simulate(options);
      EXPECT_EQ(report.violation, "") << report.log;
      EXPECT_TRUE(report.completed);
      EXPECT_EQ(report.commits, 10u);
      EXPECT_EQ(report.ahead > 0, ahead);
      took[ahead] = report.coordinator_ended;
    }
    EXPECT_LT(took[1], took[0] - 2000);
  }
}

TEST(SimulatedOverlap, NobodyTrainsAcrossAStop) {
  SimulatorOptions options = TenRounds();
  options.coordinator.train_ahead = true;
  options.coordinator.stops = {10};
  const SimulatorReport report = Simulate(options);
  EXPECT_EQ(report.violation, "") << report.log;
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.ahead, 0u);
}

}  // namespace
}  // namespace crema
