// The real `train` with workers that train ahead while values are under way.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tools/cluster_training.h"

namespace crema::testing_tools {
namespace {

const std::string kDelayed = "overlap: DELAYED local_steps: 5 ";

TinyTraining Training() { return {.max_iter = 120, .snapshot = 40}; }

struct OverlapWay {
  const char* name;
  const char* settings;
};

std::ostream& operator<<(std::ostream& out, const OverlapWay& way) { return out << way.name; }

class OverlapWays : public ::testing::TestWithParam<OverlapWay> {};

TEST_P(OverlapWays, RerunsResumedRunsAndAllTopologiesOfTheSameSumsAreTheSameToTheBit) {
  const std::string settings = kDelayed + "local_workers: 3 " + GetParam().settings;
  const ClusterFolder whole(settings, Training()), again(settings, Training()), killed(settings, Training()),
      sharded(settings + " topology: SHARDED", Training()),
      waiting(std::string("local_steps: 5 local_workers: 3 ") + GetParam().settings, Training());
  for (const ClusterFolder* folder : {&whole, &again, &sharded, &waiting}) {
    const Finished run = folder->Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err.find("Warning"), std::string::npos) << run.err;
    EXPECT_EQ(AuditJournal(*folder, 120).mistake, "");
  }
  for (const int iteration : {40, 120}) {
    EXPECT_TRUE(SameModel(whole, again, iteration)) << iteration;
    EXPECT_TRUE(SameModel(whole, sharded, iteration)) << iteration;
  }
  EXPECT_FALSE(SameModel(whole, waiting, 120)) << "nobody trained ahead";

  {
    const auto running = killed.Start();
    ASSERT_TRUE(running->WaitFor("Snapshotting solver state")) << running->Err();
    running->Signal(SIGKILL);
    running->Wait();
  }
  const Finished resumed = killed.Run({"--snapshot=auto"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(SameModel(whole, killed, 120)) << resumed.err;
  EXPECT_EQ(AuditJournal(killed, 120).mistake, "");
}

INSTANTIATE_TEST_SUITE_P(Ways, OverlapWays,
                         ::testing::Values(OverlapWay{"LocalHistory", ""}, OverlapWay{"ResetHistory", "history: RESET"},
                                           OverlapWay{"OuterMomentum", "outer_momentum: 0.5 outer_nesterov: true"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Overlap, LearnsWithEveryTopology) {
  for (const char* topology : {"STAR", "SHARDED", "RING", "TREE", "HALVING"}) {
    const ClusterFolder folder(kDelayed + "local_workers: 3 topology: " + topology, {.max_iter = 200});
    const Finished run = folder.Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << topology << "\n" << run.err;
    EXPECT_EQ(AuditJournal(folder, 200).mistake, "") << topology;
  }
}

TEST(Overlap, WorkersThatAreKilledLoseNothing) {
  for (const char* topology : {"STAR", "SHARDED"}) {
    const ClusterFolder folder(kDelayed + "dead_ms: 600 min_workers: 1 topology: " + topology,
                               {.max_iter = 1000000, .snapshot = 0, .test_interval = 50});
    std::string endpoint;
    const auto coordinator = folder.Coordinate(3, &endpoint);
    const auto goes_on = [&] { return coordinator->WaitFor(", lr = ", Count(coordinator->Err(), ", lr = ") + 2); };
    std::vector<std::unique_ptr<Running>> workers;
    for (const char* name : {"a", "b", "c"}) workers.push_back(folder.Join(endpoint, name));
    ASSERT_TRUE(goes_on()) << coordinator->Err();
    for (int i = 0; i < 2; ++i) {
      workers.front()->Signal(SIGKILL);
      workers.erase(workers.begin());
      ASSERT_TRUE(coordinator->WaitFor("was not heard of for ", i + 1)) << coordinator->Err();
      ASSERT_TRUE(goes_on()) << coordinator->Err();
      workers.push_back(folder.Join(endpoint, "again" + std::to_string(i)));
      ASSERT_TRUE(coordinator->WaitFor("worker again" + std::to_string(i) + " joined")) << coordinator->Err();
      ASSERT_TRUE(goes_on()) << coordinator->Err();
    }
    ASSERT_TRUE(coordinator->WaitFor("Iteration 300, lr")) << coordinator->Err();
    coordinator->Signal(SIGINT);
    const Finished run = coordinator->Wait();
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
    EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << topology;
    for (const auto& worker : workers) EXPECT_EQ(worker->Wait().exit_code, 0) << worker->Err();
  }
}

TEST(Overlap, ACoordinatorThatIsKilledIsReplaced) {
  const ClusterFolder folder(kDelayed + "dead_ms: 600 topology: SHARDED",
                             {.max_iter = 400, .snapshot = 150, .hidden = 512});
  std::string endpoint;
  auto coordinator = folder.Coordinate(3, &endpoint);
  std::vector<std::unique_ptr<Running>> workers;
  for (const char* name : {"a", "b", "c"}) workers.push_back(folder.Join(endpoint, name));
  ASSERT_TRUE(coordinator->WaitFor("Iteration 200, lr")) << coordinator->Err();
  coordinator->Signal(SIGKILL);
  coordinator->Wait();
  const auto successor = folder.Start(
      {"--coordinate=tcp://127.0.0.1" + endpoint.substr(endpoint.rfind(':')), "--expect=3", "--snapshot=auto"});
  const Finished run = successor->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says(" still had the parameters of round ")) << run.err;
  for (const auto& worker : workers) EXPECT_EQ(worker->Wait().exit_code, 0) << worker->Err();
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  EXPECT_EQ(AuditJournal(folder, 400).mistake, "");
}

TEST(Overlap, IsRefusedWhereItHasNoMeaning) {
  struct Case {
    const char *settings, *message;
  };
  const ClusterFolder folder("", {.max_iter = 10});
  const std::string solver = ReadText(folder / "solver.prototxt");
  const std::string place = "solver.prototxt:" + std::to_string(Count(solver, "\n") + 1) + ":1: error: distributed: ";
  for (const Case& c : {Case{"mode: GRADIENT", "but mode is GRADIENT; set mode: AVERAGE, or remove overlap"},
                        Case{"history: MEAN", "but history is MEAN; set history: LOCAL or RESET, or remove overlap"}}) {
    folder.Write("solver.prototxt", solver + "distributed { local_workers: 2 overlap: DELAYED " + c.settings + " }\n");
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 2) << c.settings << "\n" << run.err;
    EXPECT_TRUE(run.Says(place + "overlap is DELAYED, ")) << c.settings << "\n" << run.err;
    EXPECT_TRUE(run.Says(c.message)) << c.settings << "\n" << run.err;
  }
}

}  // namespace
}  // namespace crema::testing_tools
