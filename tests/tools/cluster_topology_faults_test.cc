// The real `train` with workers that exchange their values among themselves, while processes are killed and frozen,
// cannot reach each other, or are reached by strangers.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

struct FaultyWay {
  const char *name, *topology;
  bool gradients = false;
  const char* codes = "";
};

std::ostream& operator<<(std::ostream& out, const FaultyWay& way) { return out << way.name; }

class TopologyKills : public ::testing::TestWithParam<FaultyWay> {
 protected:
  std::string Topology() const { return std::string("topology: ") + GetParam().topology + " " + GetParam().codes; }
};

// The same model of both, unless a machine was so busy that in one of them a worker was out for a while.
void ExpectTheSame(const ClusterFolder& whole, const ClusterFolder& folder, int iteration, const std::string& log) {
  const JournalAudit one = AuditJournal(whole, iteration), other = AuditJournal(folder, iteration);
  EXPECT_EQ(one.mistake + other.mistake, "") << log;
  if (one.used != 3 * one.iteration || other.used != 3 * other.iteration) return;
  EXPECT_TRUE(SameModel(whole, folder, iteration))
      << "they differ by " << Difference(whole.Model(iteration), folder.Model(iteration)) << "\n"
      << log;
}

// At moments of chance, of which many are in an exchange, as steps take little.
TEST_P(TopologyKills, WorkersThatAreKilledLoseNothingAndFreshOnesComplete) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const std::string steps = GetParam().gradients ? "mode: GRADIENT " : "local_steps: 5 ";
  const ClusterFolder folder(kQuick + Topology() + steps + "min_workers: 1",
                             {.max_iter = 1000000, .snapshot = 0, .test_interval = 50});
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  constexpr int kKills = 3;
  for (int i = 0; i < kKills; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    cluster.Kill(random() % cluster.workers.size());
    ASSERT_TRUE(cluster.coordinator->WaitFor("was not heard of for ", i + 1)) << cluster.coordinator->Err();
    ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
    const std::string name = "again" + std::to_string(i);
    cluster.Join(name);
    ASSERT_TRUE(cluster.coordinator->WaitFor("worker " + name + " joined")) << cluster.coordinator->Err();
    ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  }
  ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 300, lr")) << cluster.coordinator->Err();
  cluster.coordinator->Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  EXPECT_FALSE(run.Says("could not exchange")) << run.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << "seed " << seed;
}

// One is frozen where others wait for what it has, as the coordinator says, and another one is killed then.
TEST_P(TopologyKills, AWorkerThatIsKilledInTheMiddleOfAnExchangeLosesNothing) {
  const std::string steps = GetParam().gradients ? "mode: GRADIENT " : "local_steps: 1 ";
  const ClusterFolder folder("dead_ms: 1000 min_workers: 1 chunk_bytes: 2048 credits: 2 " + steps + Topology(),
                             {.max_iter = 1000000, .snapshot = 0, .test_interval = 50, .hidden = 512});
  folder.Write("solver.prototxt", Replaced(ReadText(folder / "solver.prototxt"), "display: 10", "display: 1"));
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  bool in_exchange = false;
  for (int i = 0; i < 100 && !in_exchange; ++i) {
    cluster.workers[0]->Signal(SIGSTOP);
    for (int look = 0; look < 3 && !in_exchange; ++look) {
      in_exchange = Count(folder.Ask("status", cluster.endpoint).out, " averaging ") > 1;
    }
    if (in_exchange) break;
    cluster.workers[0]->Signal(SIGCONT);
    ASSERT_TRUE(cluster.GoesOn(1)) << cluster.coordinator->Err();
  }
  ASSERT_TRUE(in_exchange) << cluster.coordinator->Err();
  cluster.Kill(1);
  ASSERT_TRUE(cluster.coordinator->WaitFor("worker b (place ")) << cluster.coordinator->Err();
  cluster.workers[0]->Signal(SIGCONT);
  ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  cluster.Join("d");
  ASSERT_TRUE(cluster.coordinator->WaitFor("worker d joined")) << cluster.coordinator->Err();
  ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  cluster.coordinator->Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_FALSE(run.Says("could not exchange")) << run.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, TopologyKills,
    ::testing::Values(FaultyWay{"SHARDED", "SHARDED"}, FaultyWay{"RING", "RING"}, FaultyWay{"TREE", "TREE"},
                      FaultyWay{"HALVING", "HALVING"}, FaultyWay{"ShardedGradients", "SHARDED", true},
                      FaultyWay{"RingGradients", "RING", true}, FaultyWay{"TreeGradients", "TREE", true},
                      FaultyWay{"HalvingGradients", "HALVING", true},
                      FaultyWay{"Backward", "SHARDED", true, "overlap: BACKWARD "},
                      FaultyWay{"Codes", "SHARDED", false, "codec: INT8 down_codec: INT8 "},
                      FaultyWay{"CodedGradients", "SHARDED", true, "codec: TOPK down_codec: INT8 "}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TopologyFaults, AWorkerThatWasFrozenComesBack) {
  const ClusterFolder folder(kQuick + kShardedSteps + "min_workers: 1", {.max_iter = 1000000, .snapshot = 0});
  Cluster cluster(folder, 3);
  Running& coordinator = *cluster.coordinator;
  ASSERT_TRUE(cluster.GoesOn()) << coordinator.Err();
  for (int i = 1; i <= 2; ++i) {
    cluster.workers[0]->Signal(SIGSTOP);
    ASSERT_TRUE(coordinator.WaitFor("worker a (place ", i)) << coordinator.Err();
    ASSERT_TRUE(cluster.GoesOn()) << "the others go on: " << coordinator.Err();
    cluster.workers[0]->Signal(SIGCONT);
    ASSERT_TRUE(coordinator.WaitFor("worker a joined in place ", i + 1)) << coordinator.Err();
    ASSERT_TRUE(cluster.GoesOn()) << coordinator.Err();
  }
  coordinator.Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
}

TEST(TopologyFaults, ACoordinatorsSuccessorTakesTheParametersAndTheOuterMomentumFromAWorker) {
  const std::string settings = kShardedSteps + "history: MEAN outer_momentum: 0.5 outer_nesterov: true ";
  const TinyTraining training{.max_iter = 400, .snapshot = 150, .hidden = 512};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(kQuick + settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 200, lr")) << cluster.coordinator->Err();
  cluster.KillCoordinator();
  cluster.StartSuccessor(3);
  const Finished run = cluster.Finish();
  EXPECT_TRUE(run.Says("Restored iteration 150")) << run.err;
  EXPECT_TRUE(
      Matches(run.err, R"(worker [abc] still had the parameters of round \d+; the last snapshot is of round 30)"))
      << run.err;
  EXPECT_FALSE(run.Says("Iteration 160, lr")) << "what workers had is trained again: " << run.err;
  ExpectTheSame(whole, folder, 400, run.err);
}

TEST(TopologyFaults, ACoordinatorKilledAtRandomMomentsLosesNothing) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const std::string settings = kShardedSteps + "history: MEAN outer_momentum: 0.5 ";
  const TinyTraining training{.max_iter = 1000, .snapshot = 100, .hidden = 512};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(kQuick + settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.coordinator->WaitFor("Snapshotting solver state")) << cluster.coordinator->Err();
  int kills = 0;
  for (int i = 0; i < 3; ++i) {
    if (!cluster.GoesOn(1 + static_cast<int>(random() % 8))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    if (cluster.coordinator->ended()) break;
    cluster.KillCoordinator();
    ++kills;
    cluster.StartSuccessor(3);
  }
  const Finished run = cluster.Finish();
  EXPECT_GE(kills, 2) << run.err;
  ExpectTheSame(whole, folder, 1000, "seed " + std::to_string(seed) + "\n" + run.err);
}

TEST(TopologyFaults, WithoutWorkersItGoesBackToWhatItKept) {
  const std::string settings = kShardedSteps + "min_workers: 3 keep_rounds: 4 history: RESET outer_momentum: 0.5 ";
  const TinyTraining training{.max_iter = 300, .snapshot = 100, .hidden = 512};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(kQuick + settings, training);
  GoesBackWithoutWorkers(whole, folder, "Iteration 130, lr", 300);
}

// An address of which the standard says that nobody has it.
TEST(TopologyFaults, WorkersThatDoNotReachEachOtherGoThroughTheCoordinator) {
  const std::string settings = kQuick + kShardedSteps;
  const TinyTraining training{.max_iter = 100, .snapshot = 50};
  const ClusterFolder whole("local_workers: 3 local_steps: 5", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  std::string endpoint;
  const auto coordinator = folder.Coordinate(3, &endpoint);
  const std::unique_ptr<Running> workers[] = {
      folder.Join(endpoint, "a"), folder.Join(endpoint, "b"),
      folder.Join(endpoint, "c", {"--peer_address=192.0.2.1", "--allow_plaintext"})};
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const auto& worker : workers) EXPECT_EQ(worker->Wait().exit_code, 0) << worker->Err();
  EXPECT_TRUE(run.Says("workers could not exchange their values (")) << run.err;
  EXPECT_TRUE(run.Says("the next 10 rounds go through the coordinator. Can all workers reach each other's ports?"))
      << run.err;
  const JournalAudit audit = AuditJournal(folder, 100);
  EXPECT_EQ(audit.mistake, "");
  if (audit.used == 3 * audit.iteration) {
    EXPECT_TRUE(SameModel(whole, folder, 100)) << run.err;
  }
}

TEST(TopologyFaults, DrainedAndResumedItCompletes) {
  const std::string settings = kShardedSteps + "history: MEAN outer_momentum: 0.5 ";
  const TinyTraining training{.max_iter = 300, .snapshot = 0, .hidden = 512};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  int at = 0;
  {
    Cluster cluster(folder, 3);
    ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
    const Finished drain = folder.Ask("drain", cluster.endpoint);
    EXPECT_EQ(drain.exit_code, 0) << drain.err;
    const Finished run = cluster.Finish();
    EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
    at = folder.NewestState();
    EXPECT_GT(at, 0) << run.err;
    EXPECT_EQ(AuditJournal(folder, at).mistake, "");
  }
  const Finished run = folder.Run({"--snapshot=auto", "--workers=3"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Restored iteration " + std::to_string(at))) << run.err;
  EXPECT_TRUE(SameModel(whole, folder, 300)) << "drained at " << at;
  EXPECT_EQ(AuditJournal(folder, 300).mistake, "");
}

TEST(TopologyFaults, StoppedAndResumedItCompletes) {
  for (const char* topology : {"SHARDED", "TREE"}) {
    const ClusterFolder folder(std::string("local_steps: 5 topology: ") + topology,
                               {.max_iter = 300, .snapshot = 40, .hidden = 512});
    {
      Cluster cluster(folder, 3);
      ASSERT_TRUE(cluster.coordinator->WaitFor("Snapshotting solver state")) << cluster.coordinator->Err();
      ASSERT_TRUE(cluster.GoesOn(1)) << cluster.coordinator->Err();
      const Finished stop = folder.Ask("stop", cluster.endpoint);
      EXPECT_EQ(stop.exit_code, 0) << stop.err;
      const Finished run = cluster.Finish();
      EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
      EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
    }
    const Finished run = folder.Run({"--snapshot=auto", "--workers=3"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
    EXPECT_EQ(AuditJournal(folder, 300).mistake, "");
  }
}

// Out with its wishes, and no longer there: whatever the exchange was at.
TEST(TopologyFaults, WorkersThatLeaveAreMissedAtOnce) {
  const ClusterFolder folder(kShardedSteps + "dead_ms: 10000 min_workers: 1", {.max_iter = 1000000, .snapshot = 0});
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  for (int i = 1; i <= 2; ++i) {
    cluster.workers.back()->Signal(SIGINT);
    EXPECT_EQ(cluster.workers.back()->Wait().exit_code, 0) << cluster.workers.back()->Err();
    cluster.workers.pop_back();
    ASSERT_TRUE(cluster.coordinator->WaitFor(" left: stopped (" + std::to_string(3 - i) + " workers)"))
        << cluster.coordinator->Err();
    ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  }
  cluster.coordinator->Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
}

// These reach each other by sockets in folders of their own.
TEST(TopologyFaults, LocalWorkersThatDieAreStartedAgain) {
  const ClusterFolder folder(kQuick + kShardedSteps + "local_workers: 3",
                             {.max_iter = 400, .snapshot = 100, .hidden = 512});
  const auto coordinator = folder.Start();
  ASSERT_TRUE(coordinator->WaitFor(", lr = ", 2)) << coordinator->Err();
  const pid_t victim = LocalWorkerOf(folder, *coordinator);
  ASSERT_NE(victim, 0);
  kill(victim, SIGKILL);
  ASSERT_TRUE(coordinator->WaitFor("was ended by signal 9 and is started again")) << coordinator->Err();
  const Finished run = coordinator->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  EXPECT_EQ(AuditJournal(folder, 400).mistake, "");
}

// Nobody is left who has the parameters when training is to end: it ends with what was kept.
TEST(TopologyFaults, WithoutWorkersItIsDrainedAndStopped) {
  for (const std::string request : {"drain", "stop"}) {
    const ClusterFolder folder(kQuick + kShardedSteps, {.max_iter = 300, .snapshot = 100});
    Cluster cluster(folder, 3);
    ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 130, lr")) << cluster.coordinator->Err();
    for (const auto& worker : cluster.workers) worker->Signal(SIGKILL);
    while (!cluster.workers.empty()) cluster.Kill(0);
    EXPECT_EQ(folder.Ask(request, cluster.endpoint).exit_code, 0);
    const Finished run = cluster.Finish();
    EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
    const int at = folder.NewestState();
    EXPECT_GE(at, 100) << run.err;
    // Stopped while it waits for a worker that comes back, it leaves that to whoever goes on.
    if (request == "drain") {
      EXPECT_EQ(AuditJournal(folder, at).mistake, "") << run.err;
    }
    const Finished resumed = folder.Run({"--snapshot=auto", "--workers=3"});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(AuditJournal(folder, 300).mistake, "") << run.err << resumed.err;
  }
}

TEST(TopologyFaults, SlowWorkersAreWaitedForNoLongerThanTheFactorSays) {
  const ClusterFolder folder("dead_ms: 10000 straggler_factor: 2 min_workers: 1 " + kShardedSteps,
                             {.max_iter = 1000000, .snapshot = 0});
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  for (int i = 0; i < 3; ++i) {
    cluster.workers[0]->Signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cluster.workers[0]->Signal(SIGCONT);
    ASSERT_TRUE(cluster.GoesOn(4)) << cluster.coordinator->Err();
  }
  cluster.coordinator->Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
}

TEST(TopologyFaults, ALossThatIsNoNumberEndsTraining) {
  const ClusterFolder folder(kShardedSteps + "local_workers: 3", {.base_lr = "1e20"});
  const Finished run = folder.Run();
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(run.Says("error: worker local-")) << run.err;
  EXPECT_TRUE(run.Says("base_lr")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
