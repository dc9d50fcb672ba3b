// The real `train` with workers that exchange gradients among themselves, each of whom updates: what they learn, and
// that what the solver remembers is lost with nobody.
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

const std::string kGradients = "mode: GRADIENT ";

// What the solver remembers.
std::string History(const ClusterFolder& folder, int iteration) {
  std::string all;
  const SolverState state = folder.State(iteration);
  for (const BlobProto& blob : state.history()) all += blob.SerializeAsString();
  EXPECT_NE(all, "");
  return all;
}

struct Rule {
  const char* name;
  std::string solver;
  bool batch_norm = false;
};

std::ostream& operator<<(std::ostream& out, const Rule& rule) { return out << rule.name; }

class GradientRules : public ::testing::TestWithParam<Rule> {};

// With what the solver remembers; and again when its processes were killed on the way.
TEST_P(GradientRules, ShardedIsStarToTheBitKilledAndResumedOrNot) {
  const TinyTraining training{.max_iter = 60, .snapshot = 20, .more = GetParam().solver};
  const std::string settings = kGradients + "local_workers: 3 ";
  const ClusterFolder star(settings, training), sharded(settings + "topology: SHARDED", training),
      killed(settings + "topology: SHARDED", training);
  if (GetParam().batch_norm) {
    for (const ClusterFolder* folder : {&star, &sharded, &killed}) AddBatchNorm(*folder);
  }
  for (const ClusterFolder* folder : {&star, &sharded}) {
    const Finished run = folder->Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err.find("Warning"), std::string::npos) << run.err;
    EXPECT_EQ(AuditJournal(*folder, 60).mistake, "");
  }
  {
    const auto running = killed.Start();
    ASSERT_TRUE(running->WaitFor("Snapshotting solver state")) << running->Err();
    running->Signal(SIGKILL);
    running->Wait();
    EXPECT_TRUE(ProcessesLeftIn(killed.path()).empty()) << "workers outlive their coordinator";
  }
  const Finished resumed = killed.Run({"--snapshot=auto"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(AuditJournal(killed, 60).mistake, "");
  EXPECT_TRUE(SameModel(sharded, killed, 60));
  for (const int iteration : {20, 60}) {
    EXPECT_TRUE(SameModel(star, sharded, iteration));
    EXPECT_TRUE(star.StateBytes(iteration) == sharded.StateBytes(iteration)) << iteration;
  }
  EXPECT_TRUE(sharded.StateBytes(60) == killed.StateBytes(60));
}

INSTANTIATE_TEST_SUITE_P(Rules, GradientRules,
                         ::testing::Values(Rule{"Momentum", ""}, Rule{"Adam", kAdam},
                                           Rule{"AdamW", "type: \"AdamW\"\n"}, Rule{"Nesterov", "type: \"Nesterov\"\n"},
                                           Rule{"Clipped", "clip_gradients: 0.5\n"}, Rule{"BatchNorm", "", true}),
                         [](const auto& info) { return std::string(info.param.name); });

class GradientTopologies : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Settings() const { return kGradients + "topology: " + GetParam() + " "; }
};

// Without dropout and augmentation the batches of N workers are those of one with N times the batch.
TEST_P(GradientTopologies, AreOneMachineWithALargerBatchAndRerunsTheSameToTheBit) {
  for (const std::string& solver : {std::string(), kAdam}) {
    const TinyTraining training{.max_iter = 40, .snapshot = 0, .base_lr = "0.01", .more = solver};
    const ClusterFolder alone("", training), three(Settings() + "local_workers: 3", training),
        again(Settings() + "local_workers: 3", training);
    for (const ClusterFolder* folder : {&alone, &three, &again}) {
      std::string net = ReadText(*folder / "net.prototxt");
      net = Replaced(net, R"(layer \{ name: "drop1".*\n)", "");
      net = Replaced(net, "mirror: true", "mirror: false");
      if (folder == &alone) net = Replaced(net, "batch_size: 16", "batch_size: 48");
      folder->Write("net.prototxt", net);
    }
    const Finished single = alone.Run(), run = three.Run();
    ASSERT_EQ(single.exit_code, 0) << single.err;
    ASSERT_EQ(run.exit_code, 0) << run.err;
    ASSERT_EQ(again.Run().exit_code, 0);
    EXPECT_TRUE(SameModel(three, again, 40));
    // Sums of f32 in another order, over 40 updates.
    EXPECT_LT(Difference(alone.Model(40), three.Model(40)), 1e-3) << solver;
    EXPECT_EQ(AuditJournal(three, 40).mistake, "");
  }
}

TEST_P(GradientTopologies, OneWorkerIsTrainAloneToTheBit) {
  const TinyTraining training{.max_iter = 40, .snapshot = 20, .more = kAdam};
  const ClusterFolder alone("", training), one(Settings() + "local_workers: 1", training);
  for (const ClusterFolder* folder : {&alone, &one}) {
    const Finished run = folder->Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  for (const int iteration : {20, 40}) EXPECT_TRUE(SameModel(alone, one, iteration)) << iteration;
}

// What a coordinator lost, a worker has: parameters, and what Adam remembers.
TEST_P(GradientTopologies, ASuccessorOfAKilledCoordinatorGoesOnExactly) {
  const std::string settings = Settings();
  const TinyTraining training{.max_iter = 200, .snapshot = 80, .hidden = 512, .more = kAdam};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings + "dead_ms: 600 ", training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 120, lr")) << cluster.coordinator->Err();
  cluster.KillCoordinator();
  cluster.StartSuccessor(3);
  const Finished run = cluster.Finish();
  EXPECT_TRUE(run.Says("Restored iteration 80")) << run.err;
  EXPECT_TRUE(
      Matches(run.err, R"(worker [abc] still had the parameters of round \d+; the last snapshot is of round 80)"))
      << run.err;
  EXPECT_FALSE(run.Says("Iteration 90, lr")) << "what workers had is trained again: " << run.err;
  const JournalAudit audit = AuditJournal(folder, 200);
  EXPECT_EQ(audit.mistake, "");
  // Else a machine was so busy that a worker was out for a while.
  if (audit.used == 3 * audit.iteration) {
    EXPECT_TRUE(SameModel(whole, folder, 200)) << run.err;
    EXPECT_TRUE(History(whole, 200) == History(folder, 200));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradientTopologies, ::testing::Values("SHARDED", "RING", "TREE", "HALVING"),
                         [](const auto& info) { return std::string(info.param); });

TEST(GradientTopologyFaults, WithoutWorkersItGoesBackToWhatItKept) {
  const std::string settings = kGradients + "topology: SHARDED min_workers: 3 keep_rounds: 15 ";
  const TinyTraining training{.max_iter = 150, .snapshot = 50, .hidden = 512, .more = kAdam};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings + "dead_ms: 600 ", training);
  if (GoesBackWithoutWorkers(whole, folder, "Iteration 70, lr", 150)) {
    EXPECT_TRUE(History(whole, 150) == History(folder, 150));
  }
}

// An address of which the standard says that nobody has it: the coordinator updates, and goes on from what it got.
TEST(GradientTopologyFaults, WorkersThatDoNotReachEachOtherGoThroughTheCoordinator) {
  const TinyTraining training{.max_iter = 60, .snapshot = 30, .more = kAdam};
  const ClusterFolder whole(kGradients + "local_workers: 3", training),
      folder(kGradients + "topology: SHARDED dead_ms: 600 ", training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  std::string endpoint;
  const auto coordinator = folder.Coordinate(3, &endpoint);
  const std::unique_ptr<Running> workers[] = {
      folder.Join(endpoint, "a"), folder.Join(endpoint, "b"),
      folder.Join(endpoint, "c", {"--peer_address=192.0.2.1", "--allow_plaintext"})};
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const auto& worker : workers) EXPECT_EQ(worker->Wait().exit_code, 0) << worker->Err();
  EXPECT_TRUE(run.Says("the next 10 rounds go through the coordinator")) << run.err;
  const JournalAudit audit = AuditJournal(folder, 60);
  EXPECT_EQ(audit.mistake, "");
  if (audit.used == 3 * audit.iteration) {
    EXPECT_TRUE(SameModel(whole, folder, 60)) << run.err;
    EXPECT_TRUE(History(whole, 60) == History(folder, 60));
  }
}

TEST(GradientTopologyFaults, DrainedAndResumedItCompletes) {
  const std::string settings = kGradients + "topology: RING ";
  const TinyTraining training{.max_iter = 150, .snapshot = 0, .hidden = 512, .more = kAdam};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  int at = 0;
  {
    Cluster cluster(folder, 3);
    ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
    EXPECT_EQ(folder.Ask("drain", cluster.endpoint).exit_code, 0);
    const Finished run = cluster.Finish();
    EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
    at = folder.NewestState();
    EXPECT_GT(at, 0) << run.err;
    EXPECT_EQ(AuditJournal(folder, at).mistake, "");
  }
  const Finished run = folder.Run({"--snapshot=auto", "--workers=3"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(SameModel(whole, folder, 150)) << "drained at " << at;
  EXPECT_EQ(AuditJournal(folder, 150).mistake, "");
}

TEST(GradientTopologyFaults, ALossThatIsNoNumberEndsTraining) {
  const ClusterFolder folder(kGradients + "topology: SHARDED local_workers: 3", {.base_lr = "1e20"});
  const Finished run = folder.Run();
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(run.Says("error: worker local-")) << run.err;
  EXPECT_TRUE(run.Says("base_lr")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
