// The real `train` with several workers while its processes are killed and frozen and its disk is full.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

std::string ColonAndPort(const std::string& endpoint) { return endpoint.substr(endpoint.rfind(':')); }

TEST(ClusterFaults, WorkersThatAreKilledAreReplaced) {
  const unsigned first_seed = std::random_device{}();
  for (unsigned seed = first_seed; seed < first_seed + 2; ++seed) {
    std::mt19937 random(seed);
    const ClusterFolder folder(kQuick + "local_steps: 5 min_workers: 1",
                               {.max_iter = 1000000, .snapshot = 0, .test_interval = 50});
    std::string endpoint;
    const auto coordinator = folder.Coordinate(2, &endpoint);
    std::unique_ptr<Running> workers[] = {folder.Join(endpoint, "a"), folder.Join(endpoint, "b")};
    ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
    int kills = 0;
    for (int i = 0; i < 4 && !coordinator->ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
      auto& worker = workers[random() % 2];
      if (worker->ended()) break;
      worker->Signal(SIGKILL);
      worker->Wait();
      ++kills;
      worker = folder.Join(endpoint, "again" + std::to_string(i));
      if (!coordinator->WaitFor("worker again" + std::to_string(i) + " joined")) break;
      if (!GoesOn(*coordinator, 1)) break;
    }
    EXPECT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
    EXPECT_TRUE(coordinator->WaitFor("Iteration 300, lr")) << coordinator->Err();
    coordinator->Signal(SIGINT);
    const Finished run = coordinator->Wait();
    ASSERT_EQ(run.exit_code, 0) << "seed " << seed << "\n" << run.err;
    EXPECT_EQ(kills, 4) << run.err;
    EXPECT_GE(Count(run.err, "was not heard of for "), kills - 1) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
    EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << "seed " << seed;
    for (auto& worker : workers) EXPECT_EQ(worker->Wait().exit_code, 0) << worker->Err();
  }
}

TEST(ClusterFaults, LocalWorkersThatDieAreStartedAgain) {
  // Longer than anybody waits: that they are no more is known at once.
  const ClusterFolder folder("dead_ms: 600000 orphan_ms: 600000 local_workers: 2 local_steps: 5",
                             {.max_iter = 300, .snapshot = 100});
  const auto coordinator = folder.Start();
  ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
  const pid_t victim = LocalWorkerOf(folder, *coordinator);
  ASSERT_NE(victim, 0);
  kill(victim, SIGKILL);
  ASSERT_TRUE(coordinator->WaitFor("was ended by signal 9 and is started again")) << coordinator->Err();
  const Finished run = coordinator->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Count(run.err, " joined in place "), 3) << run.err;
  EXPECT_EQ(Count(run.err, " is no more, and out "), 1) << run.err;
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  EXPECT_EQ(AuditJournal(folder, 300).mistake, "");
}

TEST(ClusterFaults, LocalWorkersThatWouldReachNobodyAreNotStartedAgain) {
  const ClusterFolder folder("dead_ms: 600000 orphan_ms: 600000 local_workers: 2 local_steps: 5",
                             {.max_iter = 1000000, .snapshot = 0});
  const auto coordinator = folder.Start();
  ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
  const pid_t victim = LocalWorkerOf(folder, *coordinator);
  ASSERT_NE(victim, 0);
  for (const auto& entry : fs::directory_iterator(folder / "tmp")) fs::remove_all(entry);
  kill(victim, SIGKILL);
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("by which it would reach the coordinator, is gone")) << run.err;
  EXPECT_GT(folder.NewestState(), 0) << run.err;
}

TEST(ClusterFaults, AWorkerThatWasFrozenComesBack) {
  const ClusterFolder folder(kQuick + "local_steps: 5 min_workers: 1", {.max_iter = 100000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
  for (int i = 1; i <= 2; ++i) {
    one->Signal(SIGSTOP);
    ASSERT_TRUE(coordinator->WaitFor("was not heard of for ", i)) << coordinator->Err();
    ASSERT_TRUE(GoesOn(*coordinator)) << "the others go on: " << coordinator->Err();
    one->Signal(SIGCONT);
    ASSERT_TRUE(coordinator->WaitFor("worker one joined in place ", i + 1)) << coordinator->Err();
    ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
  }
  coordinator->Signal(SIGINT);
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
  EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "");
}

// For longer than anybody is waited for, but for the coordinator.
TEST(ClusterFaults, AFrozenCoordinatorIsWaitedFor) {
  for (const std::string topology : {"", "topology: SHARDED ", "mode: GRADIENT topology: SHARDED overlap: BACKWARD "}) {
    SCOPED_TRACE(topology);
    const ClusterFolder frozen(topology + kQuick + "local_steps: 5 join_timeout_ms: 2900", {.max_iter = 1000});
    std::string endpoint;
    const auto coordinator = frozen.Coordinate(2, &endpoint);
    const auto one = frozen.Join(endpoint, "one"), two = frozen.Join(endpoint, "two");
    ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
    coordinator->Signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
    coordinator->Signal(SIGCONT);
    const Finished run = coordinator->Wait();
    EXPECT_EQ(run.exit_code, 0) << run.err;
    // Of a round that was committed when it froze nobody may know: those who made it are asked, and say so.
    for (const char* fault : {"was not heard of", "could not exchange", "are lost"}) {
      EXPECT_FALSE(run.Says(fault)) << "nobody else stood still: " << run.err;
    }
    EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
    EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
    EXPECT_EQ(AuditJournal(frozen, 1000).mistake, "");
  }
}

// What a coordinator's successor finds.
TEST(ClusterFaults, ACoordinatorThatIsKilledIsReplacedWithoutALoss) {
  const ClusterFolder folder(kQuick + "local_steps: 5", {.max_iter = 400, .snapshot = 150});
  std::string endpoint;
  auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  // Between two snapshots, so that the parameters are with the workers alone.
  ASSERT_TRUE(coordinator->WaitFor("Iteration 200, lr")) << coordinator->Err();
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  EXPECT_FALSE(one->ended());
  const auto successor =
      folder.Start({"--coordinate=tcp://127.0.0.1" + ColonAndPort(endpoint), "--expect=2", "--snapshot=auto"});
  const Finished run = successor->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Restored iteration 150")) << run.err;
  EXPECT_TRUE(
      Matches(run.err, R"(worker (one|two) still had the parameters of round \d+; the last snapshot is of round 30)"))
      << run.err;
  EXPECT_FALSE(run.Says("Iteration 160, lr")) << "what workers had is trained again: " << run.err;
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
  EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
  const JournalAudit audit = AuditJournal(folder, 400);
  EXPECT_EQ(audit.mistake, "");
  // At most the last round of the first one was not heard of by a worker.
  EXPECT_LE(audit.committed, audit.version + 1);
}

TEST(ClusterFaults, ASnapshotThatIsNamedIsGoneBackTo) {
  const ClusterFolder folder(kQuick + "local_steps: 5", {.max_iter = 250, .snapshot = 50});
  std::string endpoint;
  auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  ASSERT_TRUE(coordinator->WaitFor("Iteration 170, lr")) << coordinator->Err();
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  const auto successor = folder.Start(
      {"--coordinate=tcp://127.0.0.1" + ColonAndPort(endpoint), "--expect=2", "--snapshot=tiny_iter_100.solverstate"});
  const Finished run = successor->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(rounds 21 to \d+ are lost and will be trained again: .* --snapshot=auto)"))
      << run.err;
  EXPECT_TRUE(run.Says("Iteration 110, lr")) << run.err;
  EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
  EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
  EXPECT_EQ(AuditJournal(folder, 250).mistake, "");
}

TEST(ClusterFaults, ASuccessorMayDisplayAndKeepOtherwise) {
  const ClusterFolder folder("local_steps: 5 dead_ms: 5000", {.max_iter = 400, .snapshot = 150});
  Cluster cluster(folder, 2);
  ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 200, lr")) << cluster.coordinator->Err();
  cluster.KillCoordinator();
  folder.Write("solver.prototxt", ReadText(folder / "solver.prototxt") +
                                      "average_loss: 20 snapshot_keep: 3 snapshot_format: BINARYPROTO "
                                      "snapshot_diff: false show_per_class_result: false\n");
  cluster.StartSuccessor(2);
  const Finished run = cluster.Finish();
  EXPECT_TRUE(Matches(run.err, R"(worker [ab] still had the parameters of round \d+)")) << run.err;
}

// Killed between its journal and its workers: nobody can have that round, but all have the one before it.
TEST(ClusterFaults, ARoundThatNobodyWasToldOfTakesNoOtherWithIt) {
  for (const std::string topology : {"", "topology: SHARDED "}) {
    // It would wait for three times as long if it had to.
    const ClusterFolder folder(topology + "local_steps: 5 dead_ms: 5000", {.max_iter = 400, .snapshot = 150});
    Cluster cluster(folder, 2);
    ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 200, lr")) << cluster.coordinator->Err();
    cluster.KillCoordinator();
    CommitInSecret(folder, 5);
    cluster.StartSuccessor(2);
    const Finished run = cluster.Finish();
    EXPECT_TRUE(Matches(run.err,
                        R"(worker [ab] still had the parameters of round \d+; the last snapshot is of round 30; )"
                        R"(nobody has those of round \d+, whose steps come again)"))
        << run.err;
    EXPECT_FALSE(run.Says("are lost and will be trained again")) << run.err;
    EXPECT_FALSE(run.Says("Iteration 160, lr")) << "what workers had is trained again: " << run.err;
    const JournalAudit audit = AuditJournal(folder, 400);
    EXPECT_EQ(audit.mistake, "");
    // That one, and perhaps the last one that the first coordinator wrote.
    EXPECT_GT(audit.committed, audit.version);
    EXPECT_LE(audit.committed, audit.version + 2);
    // Else a machine was so busy that a worker was out for a while.
    if (audit.used == 2 * audit.iteration) {
      // One that the first coordinator wrote and told nobody of may be trained once more, by both.
      const int trained = 5 * (RoundsTrained(cluster.logs[0]) + RoundsTrained(cluster.logs[1]));
      const int used = static_cast<int>(audit.used), untold = static_cast<int>(audit.committed - audit.version) - 1;
      EXPECT_TRUE(used <= trained && trained <= used + 2 * 5 * untold)
          << trained << " steps trained, " << used << " used, " << untold << " rounds told to nobody; "
          << "what workers were at counts: " << run.err << cluster.logs[0] << cluster.logs[1];
    }
  }
}

TEST(ClusterFaults, WithOuterMomentumACoordinatorsSuccessorGoesBackToTheSnapshot) {
  const std::string settings = "local_steps: 5 history: MEAN outer_momentum: 0.5 dead_ms: 600 ";
  const TinyTraining training{.max_iter = 250, .snapshot = 100};
  const ClusterFolder whole(settings + "local_workers: 2", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  std::string endpoint;
  auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  ASSERT_TRUE(coordinator->WaitFor("Iteration 150, lr")) << coordinator->Err();
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  const auto successor =
      folder.Start({"--coordinate=tcp://127.0.0.1" + ColonAndPort(endpoint), "--expect=2", "--snapshot=auto"});
  const Finished run = successor->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Restored iteration 100")) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(rounds 21 to \d+ are lost and will be trained again)")) << run.err;
  EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
  EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
  EXPECT_TRUE(SameModel(whole, folder, 250));
  EXPECT_EQ(AuditJournal(folder, 250).mistake, "");
}

TEST(ClusterFaults, ACoordinatorKilledAtRandomMomentsLosesNothing) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const ClusterFolder folder(kQuick + "local_steps: 5",
                             {.max_iter = 1500, .snapshot = 100, .more = "snapshot_keep: 2\n"});
  std::string endpoint;
  auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  const std::vector<std::string> again = {"--coordinate=tcp://127.0.0.1" + ColonAndPort(endpoint), "--expect=2",
                                          "--snapshot=auto"};
  // Before that there is nothing to go on from, and another training begins.
  ASSERT_TRUE(coordinator->WaitFor("Snapshotting solver state")) << coordinator->Err();
  int kills = 0;
  for (int i = 0; i < 3; ++i) {
    if (!GoesOn(*coordinator, static_cast<int>(random() % 8))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    if (coordinator->ended()) break;
    coordinator->Signal(SIGKILL);
    coordinator->Wait();
    ++kills;
    coordinator = folder.Start(again);
  }
  const Finished run = coordinator->Wait();
  ASSERT_EQ(run.exit_code, 0) << "seed " << seed << "\n" << run.err;
  EXPECT_GE(kills, 2) << run.err;
  EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
  EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
  EXPECT_EQ(AuditJournal(folder, 1500).mistake, "") << "seed " << seed;
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    // Not what a write left behind in whose middle it was killed.
    if (name.ends_with(".solverstate")) left.insert(name);
  }
  EXPECT_EQ(left, (std::set<std::string>{"tiny_iter_1400.solverstate", "tiny_iter_1500.solverstate"}))
      << "seed " << seed;
}

// Two runs that began as one, and the journal of the one beside a snapshot of the other.
TEST(ClusterFaults, ASnapshotThatTheJournalKnowsOtherwiseIsTold) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5", {.max_iter = 40, .snapshot = 20});
  ASSERT_EQ(folder.Run().exit_code, 0);
  for (const char* name : {"tiny_iter_40.caffemodel", "tiny_iter_40.solverstate"}) {
    fs::copy_file(folder / name, folder / (std::string("kept_") + name));
  }
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string text = ReadText(folder / "solver.prototxt");
    return text.replace(text.find(before), before.size(), after);
  };
  folder.Write("other.prototxt", with("momentum: 0.9", "momentum: 0.5"));
  const Finished other = RunProgram(
      {"train", "--solver=other.prototxt", "--threads=1", "--snapshot=tiny_iter_20.solverstate"}, folder.setting());
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_FALSE(other.Says("names other parameters")) << other.err;
  folder.Write("solver.prototxt", with("max_iter: 40", "max_iter: 60"));
  for (const char* name : {"tiny_iter_40.caffemodel", "tiny_iter_40.solverstate"}) {
    fs::rename(folder / (std::string("kept_") + name), folder / name);
  }
  const Finished run = folder.Run({"--snapshot=tiny_iter_40.solverstate"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Warning: the snapshot is of round 8, for which tiny_cluster.journal names other parameters"))
      << run.err;
}

TEST(ClusterFaults, TooFewFilesAreToldOf) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5", {.max_iter = 20});
  const auto run = [&](const std::string& limit) {
    return RunProgram({"/bin/sh", "-c",
                       "ulimit " + limit + " 16 && exec " CREMA_BIN_DIR "/train --solver=solver.prototxt --threads=1"},
                      folder.setting());
  };
  const Finished few = run("-n");
  EXPECT_EQ(few.exit_code, 1) << few.err;
  EXPECT_TRUE(few.Says("train: error: this process may have 16 files open at a time")) << few.err;
  const Finished more = run("-Sn");
  EXPECT_EQ(more.exit_code, 0) << "the system allows more: " << more.err;
}

TEST(ClusterFaults, WithoutWorkersItWaitsThenWritesASnapshotAndEnds) {
  const ClusterFolder folder("local_steps: 5 dead_ms: 400 join_timeout_ms: 6000", {.max_iter = 100000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  for (int i = 0; i < 2; ++i) {
    const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
    ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
    one->Signal(SIGKILL);
    two->Signal(SIGKILL);
    // Others come in time, once.
    ASSERT_TRUE(coordinator->WaitFor("waiting for workers: ", i + 2 - (i > 0))) << coordinator->Err();
  }
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(Matches(run.err,
                      R"(train: error: only 0 of at least 2 workers \(min_workers\) were there for .*join_timeout_ms)"))
      << run.err;
  const int at = folder.NewestState();
  EXPECT_GT(at, 0) << run.err;
  EXPECT_EQ(AuditJournal(folder, at).mistake, "");
}

TEST(ClusterFaults, ACoordinatorThatDoesNotComeBackIsGivenUp) {
  const ClusterFolder folder(kQuick + "local_steps: 5 orphan_ms: 1200", {.max_iter = 100000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const auto worker = folder.Join(endpoint, "one");
  ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
  coordinator->Signal(SIGKILL);
  const Finished left = worker->Wait();
  EXPECT_EQ(left.exit_code, 1) << left.err;
  EXPECT_TRUE(left.Says("this worker has no part in the training at ")) << left.err;
  EXPECT_TRUE(left.Says("the coordinator was not heard of for 1 s")) << left.err;
  EXPECT_FALSE(left.Says("Joined again")) << left.err;
}

TEST(ClusterFaults, TheCoordinatorStaysUntilAllKnowOfTheEnd) {
  const ClusterFolder folder("dead_ms: 15000 local_steps: 5", {.max_iter = 1000000, .snapshot = 0});
  Cluster cluster(folder, 2);
  ASSERT_TRUE(cluster.GoesOn()) << cluster.coordinator->Err();
  cluster.workers[1]->Signal(SIGSTOP);
  EXPECT_EQ(folder.Ask("stop", cluster.endpoint).exit_code, 0);
  ASSERT_TRUE(cluster.coordinator->WaitFor("waiting until all workers know of the end, for at most 15 s; not yet: b"))
      << cluster.coordinator->Err();
  EXPECT_FALSE(cluster.coordinator->ended());
  cluster.workers[1]->Signal(SIGCONT);
  const Finished run = cluster.Finish();
  EXPECT_FALSE(run.Says("when they were told of the end")) << run.err;
  EXPECT_FALSE(run.Says("Warning: waiting")) << "nothing was wrong: " << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
