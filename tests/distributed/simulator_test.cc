// Thousands of trainings on machines that do not exist, under random faults. A failure names its seed;
//   CREMA_SIMULATE=<seed>:<machines> distributed_test --gtest_filter=Simulator.OneSchedule
// runs that one alone and prints what happened.
#include "distributed/simulator.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "distributed/simulated_rounds.h"

namespace crema {
namespace {

using testing_distributed::TenRounds;
using testing_distributed::WithFault;

uint64_t running_seed = 0;
int running_machines = 0;

std::string HowToRepeat() {
  return "CREMA_SIMULATE=" + std::to_string(running_seed) + ":" + std::to_string(running_machines) +
         " distributed_test --gtest_filter=Simulator.OneSchedule";
}

// glog wants these in the type, where Clang does not count [[noreturn]].
__attribute__((noreturn)) void Abort() { std::abort(); }

__attribute__((noreturn)) void AbortWithSeed() {
  std::fprintf(stderr, "%s\n", HowToRepeat().c_str());
  std::abort();
}

class Simulator : public testing::Test {
 protected:
  // A broken CREMA_CHECK ends the program: say where it was.
  Simulator() { google::InstallFailureFunction(&AbortWithSeed); }
  ~Simulator() override { google::InstallFailureFunction(&Abort); }

  static SimulatorReport RunOne(uint64_t seed, int machines) {
    running_seed = seed;
    running_machines = machines;
    return Simulate(RandomSchedule(seed, machines));
  }

  // Seeds [first, first + count), each on one of [fewest, most] machines. Adds up what happened.
  void RunMany(uint64_t first, uint64_t count, int fewest, int most) {
    int failures = 0;
    for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
      const int machines = fewest + static_cast<int>(seed % static_cast<uint64_t>(most - fewest + 1));
      const SimulatorReport report = RunOne(seed, machines);
      commits_ += report.commits;
      coordinators_ += report.coordinators;
      recovered_ += report.recovered;
      rolled_back_ += report.rolled_back;
      exchanged_ += report.exchanged;
      exchanges_given_up_ += report.exchanges_given_up;
      ahead_ += report.ahead;
      lost_ += report.lost;
      early_ += report.early;
      apart_ += report.most_ahead > 1;
      own_ += report.apart;
      if (report.violation.empty()) continue;
      ++failures;
      ADD_FAILURE() << report.violation << "\n" << HowToRepeat();
    }
  }

  // A thousand on few machines: enough that all kinds of trouble come up.
  void RunThousand(uint64_t number) {
    RunMany(1000 * number, 1000, 2, 12);
    EXPECT_GT(commits_, 5000u);
    EXPECT_GT(coordinators_, 1200u);
    EXPECT_GT(recovered_, 50u);
    EXPECT_GT(rolled_back_, 10u);
    EXPECT_GT(exchanged_, 2000u);
    EXPECT_GT(exchanges_given_up_, 0u);
    EXPECT_GT(ahead_, 2000u);
    EXPECT_GT(lost_, 2u);
    EXPECT_GT(early_, 300u);
    EXPECT_GT(apart_, 50u);
    EXPECT_GT(own_, 300u);
  }

  uint64_t commits_ = 0, coordinators_ = 0, recovered_ = 0, rolled_back_ = 0;
  uint64_t exchanged_ = 0, exchanges_given_up_ = 0, ahead_ = 0, lost_ = 0, early_ = 0;
  uint64_t own_ = 0;    // tasks of tournaments that began from other parameters than the best
  uint64_t apart_ = 0;  // trainings in which one worker was more than a lease ahead of another
};

TEST_F(Simulator, Thousand0) { RunThousand(0); }
TEST_F(Simulator, Thousand1) { RunThousand(1); }
TEST_F(Simulator, Thousand2) { RunThousand(2); }
TEST_F(Simulator, Thousand3) { RunThousand(3); }
TEST_F(Simulator, Thousand4) { RunThousand(4); }
TEST_F(Simulator, Thousand5) { RunThousand(5); }
TEST_F(Simulator, Thousand6) { RunThousand(6); }
TEST_F(Simulator, Thousand7) { RunThousand(7); }
TEST_F(Simulator, Thousand8) { RunThousand(8); }
TEST_F(Simulator, Thousand9) { RunThousand(9); }
TEST_F(Simulator, HundredMachines) { RunMany(20'000, 300, 90, 110); }
TEST_F(Simulator, ThousandMachines) { RunMany(30'000, 12, 1000, 1000); }

TEST_F(Simulator, OneSchedule) {
  const char* which = std::getenv("CREMA_SIMULATE");
  if (!which) GTEST_SKIP() << "CREMA_SIMULATE=<seed>:<machines> names none";
  char* end = nullptr;
  const uint64_t seed = std::strtoull(which, &end, 10);
  ASSERT_EQ(*end, ':') << "CREMA_SIMULATE is <seed>:<machines>";
  const SimulatorReport report = RunOne(seed, std::atoi(end + 1));
  std::printf("%s%s\n", report.log.c_str(), report.violation.c_str());
  EXPECT_EQ(report.violation, "");
}

TEST_F(Simulator, TheSameSeedIsTheSameTraining) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SimulatorReport first = RunOne(seed, 6), second = RunOne(seed, 6);
    EXPECT_EQ(first.log, second.log);
    EXPECT_EQ(first.events, second.events);
    EXPECT_EQ(first.virtual_time, second.virtual_time);
  }
}

TEST_F(Simulator, WithoutFaultsEveryRoundIsCommittedOnce) {
  const SimulatorReport report = Simulate(TenRounds());
  EXPECT_EQ(report.violation, "") << report.log;
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 10u);
  EXPECT_EQ(report.coordinators, 1u);
  EXPECT_LT(report.coordinator_ended, 35'000);
}

SimulatorOptions TenRoundsStale(uint64_t staleness) {
  SimulatorOptions options = TenRounds();
  options.coordinator.stale = true;
  options.coordinator.staleness = staleness;
  return options;
}

TEST_F(Simulator, WhoeverNeedNotWaitIsNotHeldUpByStragglers) {
  SimulatorOptions together = TenRounds();
  together.stragglers = 4;
  together.bound = 500'000;
  SimulatorOptions apart = TenRoundsStale(UINT32_MAX);
  apart.stragglers = 4;
  const SimulatorReport waiting = Simulate(together), stale = Simulate(apart);
  EXPECT_EQ(waiting.violation, "") << waiting.log;
  EXPECT_EQ(stale.violation, "") << stale.log;
  EXPECT_TRUE(stale.completed);
  EXPECT_GE(stale.commits, 30u);
  EXPECT_GT(stale.most_ahead, 2u);
  EXPECT_LT(stale.coordinator_ended, waiting.coordinator_ended * 2 / 3);
}

TEST_F(Simulator, NobodyIsFurtherAheadThanAllowed) {
  for (const uint64_t staleness : {0u, 1u, 3u}) {
    SimulatorOptions options = TenRoundsStale(staleness);
    options.stragglers = 6;
    options.bound = 500'000;
    const SimulatorReport report = Simulate(options);
    EXPECT_EQ(report.violation, "") << report.log;
    EXPECT_TRUE(report.completed);
    // The lease that it was allowed to begin included.
    EXPECT_EQ(report.most_ahead, staleness + 1);
  }
}

TEST_F(Simulator, WithoutWaitingAKilledWorkerHoldsNobodyUp) {
  const SimulatorReport report =
      WithFault(TenRoundsStale(UINT32_MAX), {.kind = Fault::Kind::kKillWorkers, .at = 9000, .lasts = 0, .first = 1});
  EXPECT_TRUE(report.completed);
  EXPECT_LT(report.coordinator_ended, 40'000);
}

TEST_F(Simulator, WithoutWaitingWorkersBringBackWhatAKilledCoordinatorLost) {
  for (const int point : {Fault::kNow, Fault::kBeforeJournal, Fault::kAfterJournal}) {
    const SimulatorReport report = WithFault(
        TenRoundsStale(2), {.kind = Fault::Kind::kKillCoordinator, .at = 9000, .lasts = 3000, .detail = point});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.coordinators, 2u);
    EXPECT_EQ(report.recovered, 1u);
    EXPECT_EQ(report.rolled_back, 0u);
  }
}

TEST_F(Simulator, WithoutWaitingDrainFinishesLeases) {
  const SimulatorReport drained = WithFault(TenRoundsStale(2), {.kind = Fault::Kind::kDrain, .at = 9000});
  EXPECT_FALSE(drained.completed);
  EXPECT_GT(drained.commits, 0u);
  EXPECT_LT(drained.coordinator_ended, 9000 + 5000);
}

TEST_F(Simulator, AKilledWorkerHoldsOthersUpUntilItIsCalledDead) {
  const SimulatorReport report =
      WithFault(TenRounds(), {.kind = Fault::Kind::kKillWorkers, .at = 9000, .lasts = 0, .first = 1});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 10u);
  EXPECT_LT(report.coordinator_ended, 45'000);
}

TEST_F(Simulator, AStoppedProcessThatGoesOnIsFenced) {
  const SimulatorReport report =
      WithFault(TenRounds(), {.kind = Fault::Kind::kPauseWorkers, .at = 9000, .lasts = 15'000, .first = 2});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 10u);
}

TEST_F(Simulator, AllWorkersDieAndComeBack) {
  const SimulatorReport report =
      WithFault(TenRounds(), {.kind = Fault::Kind::kKillWorkers, .at = 9000, .lasts = 60'000, .first = 0, .count = 4});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 10u);
  EXPECT_EQ(report.gave_up, 0u);
}

// Without a snapshot, and yet nothing is lost but the round that was never announced.
TEST_F(Simulator, WorkersBringBackWhatAKilledCoordinatorLost) {
  for (const auto& [point, commits] :
       {std::pair(Fault::kNow, 10), std::pair(Fault::kBeforeJournal, 10), std::pair(Fault::kAfterJournal, 11)}) {
    const SimulatorReport report = WithFault(
        TenRounds(), {.kind = Fault::Kind::kKillCoordinator, .at = 9000, .lasts = 3000, .first = 0, .detail = point});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.coordinators, 2u);
    EXPECT_EQ(report.recovered, 1u);
    EXPECT_EQ(report.rolled_back, 0u);
    EXPECT_EQ(report.commits, static_cast<uint64_t>(commits)) << report.log;
    // What they were at counts, the results of the round that was told to nobody among it, and nobody waited for more.
    EXPECT_EQ(report.tasks, 40u) << report.log;
    EXPECT_LT(report.coordinator_ended, 45'000);
  }
}

// Between two snapshots, and one of those who took part does not come back: what it might have had is waited for.
TEST_F(Simulator, ARoundThatNobodyWasToldOfTakesNoOtherWithIt) {
  for (const bool dies : {false, true}) {
    SimulatorOptions options = TenRounds();
    options.snapshot_every = 4;
    if (dies) options.faults.push_back({.kind = Fault::Kind::kKillWorkers, .at = 19'500, .lasts = 60'000, .first = 2});
    const SimulatorReport report = WithFault(
        options, {.kind = Fault::Kind::kKillCoordinator, .at = 17'500, .lasts = 3000, .detail = Fault::kAfterJournal});
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.recovered, 1u) << report.log;
    EXPECT_EQ(report.rolled_back, 0u) << report.log;
    EXPECT_EQ(report.commits, 11u) << report.log;
    EXPECT_EQ(report.orphans, 0u);
  }
}

TEST_F(Simulator, WithAllThatHadItARoundIsRolledBack) {
  SimulatorOptions options = TenRounds();
  options.snapshot_every = 3;
  options.faults.push_back({.kind = Fault::Kind::kKillWorkers, .at = 13'500, .lasts = 5000, .first = 0, .count = 4});
  const SimulatorReport report =
      WithFault(options, {.kind = Fault::Kind::kKillCoordinator, .at = 13'500, .lasts = 3000});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.rolled_back, 1u) << report.log;
  EXPECT_EQ(report.version, 10u);
}

TEST_F(Simulator, OnlyTheCoordinatorsSideOfAPartitionGoesOn) {
  // Three of four are cut off: fewer than min_workers are left, and nothing is committed meanwhile.
  const SimulatorReport report = WithFault(
      TenRounds(), {.kind = Fault::Kind::kCut, .at = 9000, .lasts = 40'000, .first = 1, .count = 3, .detail = 3});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 10u);
  EXPECT_GT(report.coordinator_ended, 49'000);
}

TEST_F(Simulator, AFullDiskDelaysCommitsOnly) {
  const SimulatorReport report =
      WithFault(TenRounds(), {.kind = Fault::Kind::kJournalFails, .at = 9000, .lasts = 20'000});
  EXPECT_TRUE(report.completed);
  EXPECT_EQ(report.commits, 10u);
  EXPECT_EQ(report.coordinators, 1u);
}

TEST_F(Simulator, DrainAndStopEndSoon) {
  for (const uint64_t history_every : {0u, 5u}) {
    SimulatorOptions options = TenRounds();
    options.coordinator.history_every = history_every;
    const SimulatorReport drained = WithFault(options, {.kind = Fault::Kind::kDrain, .at = 9000});
    EXPECT_FALSE(drained.completed);
    EXPECT_GT(drained.commits, 0u);
    EXPECT_LT(drained.coordinator_ended, 9000 + 5000);
    const SimulatorReport stopped = WithFault(options, {.kind = Fault::Kind::kStop, .at = 9000});
    EXPECT_FALSE(stopped.completed);
    EXPECT_LT(stopped.coordinator_ended, 9000 + 500);
  }
}

}  // namespace
}  // namespace crema
