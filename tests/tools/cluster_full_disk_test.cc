// Trainings by several processes that find no room for what they write.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

TEST(ClusterFullDisk, OfSnapshotsLosesNothingAndIsReported) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5", {.max_iter = 40, .hidden = 512});
  Setting setting = folder.setting();
  setting.file_size_limit = 64 << 10;  // below one model, above the journal
  Running running({"train", "--solver=solver.prototxt", "--threads=1"}, setting);
  EXPECT_TRUE(running.WaitFor("the snapshot is tried again every")) << running.Err();
  running.Signal(SIGINT);
  const Finished run = running.Wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("Snapshot at iteration 20 failed: ")) << run.err;
  EXPECT_TRUE(run.Says("Snapshot at iteration 40 failed: ")) << run.err;
  EXPECT_TRUE(run.Says("Iteration 30, lr")) << "training goes on: " << run.err;
  EXPECT_EQ(folder.NewestState(), -1);
}

TEST(ClusterFullDisk, TheLastSnapshotWaitsForRoom) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5", {.max_iter = 40, .snapshot = 0});
  const std::string in_the_way = folder / "tiny_iter_40.caffemodel";
  fs::create_directory(in_the_way);
  const auto running = folder.Start({});
  ASSERT_TRUE(running->WaitFor("the snapshot is tried again every")) << running->Err();
  EXPECT_FALSE(running->ended());
  fs::remove(in_the_way);
  const Finished run = running->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Snapshot at iteration 40 failed: ")) << run.err;
  EXPECT_EQ(folder.NewestState(), 40);
}

TEST(ClusterFullDisk, WhoWaitsForRoomAnswers) {
  const ClusterFolder folder("local_steps: 5", {.max_iter = 40, .snapshot = 0});
  const std::string in_the_way = folder / "tiny_iter_40.caffemodel";
  fs::create_directory(in_the_way);
  const Cluster cluster(folder, 1);
  ASSERT_TRUE(cluster.coordinator->WaitFor("the snapshot is tried again every")) << cluster.coordinator->Err();
  EXPECT_EQ(cluster.workers[0]->Wait().exit_code, 0);
  for (const char* request : {"status", "drain"}) {
    const Finished asked = folder.Ask(request, cluster.endpoint);
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    EXPECT_TRUE(Matches(asked.out, R"(waiting for room \(.*tiny_iter_40\.caffemodel.*\): iteration 40 of 40)"))
        << asked.out;
  }
  EXPECT_FALSE(cluster.coordinator->ended()) << cluster.coordinator->Err();
  EXPECT_EQ(folder.Ask("stop", cluster.endpoint).exit_code, 0);
  const Finished run = cluster.coordinator->Wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("asked to stop: this ends without what there is no room for")) << run.err;
  EXPECT_EQ(folder.NewestState(), 0) << "which is written for those who join";
}

// Nothing is committed that the journal does not have: training waits for room, and says so.
TEST(ClusterFullDisk, OfTheJournalHoldsTraining) {
  const ClusterFolder folder("local_workers: 2 local_steps: 1", {.max_iter = 100000, .snapshot = 0, .hidden = 16});
  Setting setting = folder.setting();
  // The log has to fit, and a snapshot.
  setting.file_size_limit = 16 << 10;
  Running running({"train", "--solver=solver.prototxt", "--threads=1"}, setting);
  ASSERT_TRUE(running.WaitFor("the round cannot be committed, and is tried again: tiny_cluster.journal"))
      << running.Err();
  const auto rounds_so_far = [&] { return Count(running.Err(), ", lr = "); };
  const int rounds = rounds_so_far();
  EXPECT_GT(rounds, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(rounds_so_far(), rounds) << "nothing goes on: " << running.Err();
  running.Signal(SIGINT);
  running.WaitFor("once more to stop at once");
  running.Signal(SIGINT);
  const Finished run = running.Wait();
  EXPECT_TRUE(run.Says("Optimization stopped early.") || run.exit_code == 1) << run.err;
  EXPECT_EQ(Count(run.err, "the round cannot be committed"), 1) << "said once: " << run.err;

  // With room again, what was committed counts.
  const int lines = rounds;
  const auto again = folder.Start({"--snapshot=auto"});
  ASSERT_TRUE(again->WaitFor(", lr = ", 2)) << again->Err();
  EXPECT_GT(lines, 0);
  again->Signal(SIGINT);
  const Finished resumed = again->Wait();
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "");
}

}  // namespace
}  // namespace crema::testing_tools
