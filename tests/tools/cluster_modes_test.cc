// The real `train` with elastic averaging, and with workers that do not wait for each other.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

const std::string kElastic = "mode: ELASTIC local_steps: 5 ", kStale = "mode: STALE local_steps: 5 ",
                  kUnlimited = kStale + "staleness: 4294967295 ";

// The first and the last loss that a log displays.
std::pair<float, float> Losses(const std::string& log) {
  const auto all = FindAll(log, R"(Iteration \d+ \([^)]*\), loss = ([\d.e+-]+))");
  return all.empty() ? std::pair(0.0f, 0.0f) : std::pair(std::stof(all.front()), std::stof(all.back()));
}

TEST(ClusterModes, Learn) {
  for (const std::string& mode :
       {kElastic, kElastic + "elastic_rate: 0.2 down_codec: INT8 history: RESET ", kStale, kUnlimited,
        kStale + "staleness: 0 ", std::string("mode: STALE local_steps: 1 "), kStale + "codec: INT8 outer_lr: 1.5 "}) {
    SCOPED_TRACE(mode);
    const ClusterFolder folder("local_workers: 2 " + mode, {.max_iter = 200, .snapshot = 50});
    const Finished run = folder.Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
    const auto [first, last] = Losses(run.err);
    EXPECT_LT(last, 0.7f * first) << run.err;
    for (const int iteration : {50, 100, 150, 200}) {
      const std::string name = "Snapshotting to binary proto file tiny_iter_" + std::to_string(iteration) + ".";
      EXPECT_EQ(Count(run.err, name), 1) << name << run.err;
      if (iteration == 200) continue;
      EXPECT_EQ(Count(run.err, "Iteration " + std::to_string(iteration) + ", Testing"), 1) << run.err;
    }
    EXPECT_FALSE(run.Says("this was training by one machine")) << run.err;
    EXPECT_EQ(Count(run.err, ", lr = "), 20) << "each tenth iteration, once: " << run.err;
    EXPECT_EQ(AuditJournal(folder, 200).mistake, "");
  }
}

TEST(ClusterModes, ElasticRerunsAndResumedRunsAreTheSameToTheBit) {
  for (const char* solver : {"", "type: \"Adam\" momentum2: 0.99\n"}) {
    const TinyTraining training{.max_iter = 60, .snapshot = 20, .more = solver};
    const std::string settings = "local_workers: 2 " + kElastic;
    const ClusterFolder whole(settings, training), again(settings, training), killed(settings, training);
    const Finished run = whole.Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    ASSERT_EQ(again.Run().exit_code, 0);
    EXPECT_TRUE(SameModel(whole, again, 60));
    EXPECT_TRUE(SameModel(whole, again, 40));
    EXPECT_EQ(AuditJournal(whole, 60).mistake, "");
    // It is no plain average.
    const ClusterFolder average("local_workers: 2 local_steps: 5", training);
    ASSERT_EQ(average.Run().exit_code, 0);
    EXPECT_FALSE(SameModel(whole, average, 60));
    {
      const auto running = killed.Start();
      ASSERT_TRUE(running->WaitFor("Snapshotting solver state")) << running->Err();
      running->Signal(SIGKILL);
      running->Wait();
      EXPECT_TRUE(ProcessesLeftIn(killed.path()).empty()) << "workers outlive their coordinator";
    }
    const Finished resumed = killed.Run({"--snapshot=auto"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(SameModel(whole, killed, 60)) << resumed.err;
    EXPECT_EQ(AuditJournal(killed, 60).mistake, "");
  }
}

TEST(ClusterModes, GoOnWhenAWorkerIsKilled) {
  for (const std::string& mode : {kElastic, kStale, kUnlimited}) {
    SCOPED_TRACE(mode);
    const ClusterFolder folder(kQuick + mode + "min_workers: 1", {.max_iter = 1000000, .snapshot = 0});
    std::string endpoint;
    const auto coordinator = folder.Coordinate(2, &endpoint);
    const auto stays = folder.Join(endpoint, "stays"), dies = folder.Join(endpoint, "dies");
    ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
    dies->Signal(SIGKILL);
    dies->Wait();
    ASSERT_TRUE(coordinator->WaitFor("worker dies (place ")) << coordinator->Err();
    ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
    const auto comes = folder.Join(endpoint, "comes");
    ASSERT_TRUE(coordinator->WaitFor("worker comes joined")) << coordinator->Err();
    ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
    coordinator->Signal(SIGINT);
    const Finished run = coordinator->Wait();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "");
    EXPECT_EQ(stays->Wait().exit_code, 0) << stays->Err();
    EXPECT_EQ(comes->Wait().exit_code, 0) << comes->Err();
  }
}

// One that is frozen holds those up who may not go too far ahead, until it is called dead; others not.
TEST(ClusterModes, WithoutALimitNobodyWaitsForAWorkerThatStands) {
  const ClusterFolder folder(kUnlimited + "dead_ms: 60000", {.max_iter = 1000000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  ASSERT_TRUE(GoesOn(*coordinator)) << coordinator->Err();
  two->Signal(SIGSTOP);
  EXPECT_TRUE(GoesOn(*coordinator, 10)) << coordinator->Err();
  EXPECT_EQ(Count(coordinator->Err(), "was not heard of"), 0) << coordinator->Err();
  two->Signal(SIGCONT);
  EXPECT_TRUE(GoesOn(*coordinator, 2)) << coordinator->Err();
  coordinator->Signal(SIGINT);
  const Finished run = coordinator->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "");
  EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
  EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
}

TEST(ClusterModes, AKilledCoordinatorIsReplaced) {
  for (const std::string& mode : {kElastic, kStale}) {
    SCOPED_TRACE(mode);
    const ClusterFolder folder(kQuick + mode, {.max_iter = 400, .snapshot = 150, .hidden = 512});
    std::string endpoint;
    const auto coordinator = folder.Coordinate(2, &endpoint);
    const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
    ASSERT_TRUE(coordinator->WaitFor("Iteration 200, lr")) << coordinator->Err();
    coordinator->Signal(SIGKILL);
    coordinator->Wait();
    const std::string port = endpoint.substr(endpoint.rfind(':'));
    const Finished run = folder.Start({"--coordinate=tcp://127.0.0.1" + port, "--expect=2", "--snapshot=auto"})->Wait();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(run.Says("Restored iteration 150")) << run.err;
    EXPECT_TRUE(Matches(run.err, R"(worker (one|two) still had the parameters of round \d+)")) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
    EXPECT_EQ(AuditJournal(folder, 400).mistake, "");
    EXPECT_EQ(one->Wait().exit_code, 0) << one->Err();
    EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
  }
}

TEST(ClusterModes, ADrainedTrainingGoesOn) {
  for (const std::string& mode : {kElastic, kStale, kUnlimited}) {
    SCOPED_TRACE(mode);
    const ClusterFolder folder("local_workers: 2 " + mode, {.max_iter = 200, .snapshot = 0, .hidden = 512});
    const auto running = folder.Start();
    ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
    running->Signal(SIGINT);
    const Finished first = running->Wait();
    ASSERT_EQ(first.exit_code, 0) << first.err;
    EXPECT_TRUE(first.Says("Optimization stopped early.")) << first.err;
    const int at = folder.NewestState();
    ASSERT_GT(at, 0) << first.err;
    ASSERT_LT(at, 200);
    EXPECT_EQ(AuditJournal(folder, at).mistake, "");
    const Finished second = folder.Run({"--snapshot=auto"});
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_TRUE(second.Says("Restored iteration " + std::to_string(at))) << second.err;
    EXPECT_GT(LastAccuracy(second.err), 0.9f) << second.err;
    EXPECT_EQ(AuditJournal(folder, 200).mistake, "");
  }
}

// Where one process would: the run stops for all while the test is done that is one too many.
TEST(ClusterModes, PatienceEndsARunAtItsTest) {
  for (const std::string& mode :
       {std::string("local_steps: 5 "), std::string("mode: GRADIENT topology: RING "), kStale}) {
    SCOPED_TRACE(mode);
    const TinyTraining training{
        .max_iter = 1000, .snapshot = 0, .test_interval = 20, .more = "best { output: \"accuracy\" patience: 2 }\n"};
    const ClusterFolder folder("local_workers: 2 " + mode, training);
    const Finished run = folder.Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(run.Says("the last tests were not better")) << run.err;
    EXPECT_FALSE(run.Says("stopping")) << run.err;
    const int end = folder.NewestState();
    EXPECT_GT(end, 0);
    EXPECT_LT(end, 1000);
    const int tests = Count(run.err, ", Testing net");
    if (mode != kStale) {
      EXPECT_EQ(end, (tests - 1) * 20) << run.err;
    }
    const Finished again = folder.Run({"--snapshot=auto"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    if (mode != kStale) {
      EXPECT_EQ(folder.NewestState(), end) << again.err;
    }
  }
}

}  // namespace
}  // namespace crema::testing_tools
