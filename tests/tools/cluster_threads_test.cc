// The real `train --worker_threads`: what its threads learn is what processes learn, and one process is all there is.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

const std::string kThreads = "--worker_threads";

void ExpectSame(const ClusterFolder& a, const ClusterFolder& b, int iteration) {
  EXPECT_TRUE(SameModel(a, b, iteration)) << iteration;
  EXPECT_TRUE(a.StateBytes(iteration) == b.StateBytes(iteration)) << iteration;
}

struct ThreadsWay {
  const char* name;
  std::string settings;
  std::string solver = {};
  const char* threads = "--threads=1";
};

std::ostream& operator<<(std::ostream& out, const ThreadsWay& way) { return out << way.name; }

class ClusterThreads : public ::testing::TestWithParam<ThreadsWay> {
 protected:
  std::string Settings() const { return "local_workers: 3 local_steps: 5 " + GetParam().settings; }
  TinyTraining Training() const { return {.max_iter = 60, .snapshot = 20, .more = GetParam().solver}; }
};

TEST_P(ClusterThreads, AreProcessesToTheBitAndRerunsTheSame) {
  const ClusterFolder processes(Settings(), Training()), threads(Settings(), Training()),
      again(Settings() + " worker_threads: true", Training());
  const Finished runs[] = {processes.Run({GetParam().threads}), threads.Run({GetParam().threads, kThreads}),
                           again.Run({GetParam().threads})};
  for (const Finished& run : runs) {
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err.find("Warning"), std::string::npos) << run.err;
    for (int worker = 0; worker < 3; ++worker) {
      EXPECT_EQ(Count(run.err, "worker local-" + std::to_string(worker) + " joined in place "), 1) << run.err;
    }
    EXPECT_EQ(Count(run.err, "Optimization Done."), 1) << run.err;
  }
  for (const int iteration : {20, 60}) {
    ExpectSame(processes, threads, iteration);
    ExpectSame(threads, again, iteration);
  }
  EXPECT_EQ(AuditJournal(threads, 60).mistake, "");
}

// Threads with what processes left, and the other way round.
TEST_P(ClusterThreads, GoOnExactlyAfterAKill) {
  const ClusterFolder whole(Settings(), Training());
  ASSERT_EQ(whole.Run({GetParam().threads, kThreads}).exit_code, 0);
  for (const bool threads_first : {true, false}) {
    const ClusterFolder killed(Settings(), Training());
    const std::string switches[] = {kThreads, "--noworker_threads"};
    {
      const auto running = killed.Start({GetParam().threads, switches[threads_first ? 0 : 1]});
      ASSERT_TRUE(running->WaitFor("Snapshotting solver state")) << running->Err();
      running->Signal(SIGKILL);
      running->Wait();
      EXPECT_TRUE(ProcessesLeftIn(killed.path()).empty());
      // The sockets of killed processes, which the next ones would remove.
      if (!threads_first) {
        for (const auto& entry : std::filesystem::directory_iterator(killed / "tmp")) {
          std::filesystem::remove_all(entry.path());
        }
      }
    }
    const Finished resumed = killed.Run({GetParam().threads, switches[threads_first ? 1 : 0], "--snapshot=auto"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    ExpectSame(whole, killed, 60);
    EXPECT_EQ(AuditJournal(killed, 60).mistake, "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ClusterThreads,
    ::testing::Values(ThreadsWay{"Average", ""}, ThreadsWay{"Gradient", "mode: GRADIENT", kAdam},
                      ThreadsWay{"Sharded", "topology: SHARDED outer_momentum: 0.6 outer_nesterov: true"},
                      ThreadsWay{"ShardedGradient", "topology: SHARDED mode: GRADIENT", kAdam},
                      ThreadsWay{"RingOfMeans", "topology: RING history: MEAN"},
                      ThreadsWay{"TwoComputeThreads", "topology: SHARDED history: MEAN", "", "--threads=2"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ClusterOfOneProcess, HasNoOtherAndNoSocketInAFolder) {
  const ClusterFolder folder("local_workers: 3 local_steps: 5 topology: SHARDED", {.max_iter = 100000, .snapshot = 0});
  const auto running = folder.Start({kThreads});
  ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
  EXPECT_EQ(ProcessesIn(folder.path()), (std::vector<pid_t>{running->pid()}));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "tmp"));
  running->Signal(SIGINT);
  EXPECT_EQ(running->Wait().exit_code, 0);
}

TEST(ClusterOfOneProcess, CtrlCWritesASnapshotThatGoesOnExactly) {
  for (const std::string settings : {"history: MEAN", "topology: SHARDED mode: GRADIENT"}) {
    const std::string all = "local_workers: 2 local_steps: 5 worker_threads: true " + settings;
    const TinyTraining training{.max_iter = 200, .snapshot = 0};
    const ClusterFolder whole(all, training), stopped(all, training);
    ASSERT_EQ(whole.Run().exit_code, 0);
    const auto running = stopped.Start();
    ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
    running->Signal(SIGTERM);
    const Finished first = running->Wait();
    ASSERT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(Count(first.err, "stopping when the round is done; once more to stop at once"), 1) << first.err;
    EXPECT_EQ(Count(first.err, "Optimization stopped early."), 1) << first.err;
    const int at = stopped.NewestState();
    ASSERT_GT(at, 0) << first.err;
    ASSERT_LT(at, 200);
    const Finished second = stopped.Run({"--snapshot=auto"});
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_TRUE(SameModel(stopped, whole, 200)) << settings << ", stopped at " << at;
    EXPECT_EQ(AuditJournal(stopped, 200).mistake, "");
  }
}

TEST(ClusterOfOneProcess, ABadRecordEndsTraining) {
  for (const std::string topology : {"STAR", "SHARDED"}) {
    const ClusterFolder folder("local_workers: 2 local_steps: 5 worker_threads: true topology: " + topology,
                               {.test_interval = 100000, .bad_record = 123, .more = "test_initialization: false\n"});
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_EQ(Count(run.err, "error: worker local-"), 1) << run.err;
    EXPECT_TRUE(run.Says("00000123")) << run.err;
  }
}

TEST(ClusterOfOneProcess, ALossThatIsNoNumberEndsTraining) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5 worker_threads: true", {.base_lr = "1e20"});
  const Finished run = folder.Run();
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(error: worker local-\d: iteration \d+: the loss is )")) << run.err;
}

// Threads within, another process over TCP.
TEST(ClusterOfOneProcess, OthersJoinItFromOutside) {
  const ClusterFolder folder("local_steps: 5 history: MEAN min_workers: 1", {.max_iter = 100000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(3, &endpoint, {"--workers=2", kThreads, "--timeline=trace.json"});
  const auto outside = folder.Join(endpoint, "outside");
  ASSERT_TRUE(coordinator->WaitFor("Iteration 20, lr")) << coordinator->Err();
  const Finished status = folder.Ask("status", endpoint);
  EXPECT_EQ(status.exit_code, 0) << status.err;
  for (const char* name : {"local-0", "local-1", "outside"}) {
    EXPECT_TRUE(Matches(status.out, "\n +[0-2] +" + std::string(name) + " +(training|waiting) +")) << name << "\n"
                                                                                                   << status.out;
  }
  // Of three workers, one of which is lost.
  outside->Signal(SIGKILL);
  outside->Wait();
  ASSERT_TRUE(coordinator->WaitFor("worker outside (place")) << coordinator->Err();
  ASSERT_TRUE(coordinator->WaitFor(", lr = ", Count(coordinator->Err(), ", lr = ") + 2)) << coordinator->Err();
  EXPECT_EQ(folder.Ask("drain", endpoint).exit_code, 0);
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "");
  EXPECT_NE(ReadText(folder / "trace.json").find("local-1"), std::string::npos);
}

TEST(ClusterOfOneProcess, GivesEachWorkerAGpuOfItsOwn) {
  if (RunProgram({"crema", "device_query"}).out.find("No GPU") != std::string::npos) GTEST_SKIP() << "there is no GPU";
  const std::string settings = "local_workers: 2 local_steps: 2 topology: SHARDED";
  const TinyTraining training{.max_iter = 4, .test_interval = 100};
  const ClusterFolder processes(settings, training), threads(settings, training);
  const Finished run = threads.Run({kThreads, "--gpu=0,1"});
  if (run.Says("there is no GPU 1")) GTEST_SKIP() << "there is one GPU";
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Finished other = processes.Run({"--gpu=0,1"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  ExpectSame(processes, threads, 4);
}

TEST(ClusterOfOneProcess, WhereThereAreNoThreadsToMakeItIsRefused) {
  struct Case {
    const char* settings;
    std::vector<std::string> flags;
    const char* message;
  };
  const ClusterFolder folder("", {.max_iter = 2, .snapshot = 0});
  const std::string solver = ReadText(folder / "solver.prototxt");
  for (const Case& c :
       {Case{"", {kThreads}, "--worker_threads: there are no workers that could be threads; add --workers=N"},
        Case{"", {kThreads, "--coordinate=tcp://127.0.0.1:*"}, "--worker_threads: there are no workers"},
        Case{"worker_threads: true endpoint: \"tcp://127.0.0.1:0\"", {}, "set local_workers (--workers=N)"},
        Case{"mode: HOGWILD local_workers: 2", {kThreads}, "with mode: HOGWILD all workers are threads"},
        Case{"mode: HOGWILD local_workers: 2 worker_threads: true", {}, "but these are set: worker_threads"},
        Case{"mode: OFF", {"--workers=2", kThreads}, "the solver file says distributed { mode: OFF }"},
        Case{"engine: MPI", {kThreads}, "--worker_threads does not go with engine: MPI"},
        Case{"",
             {"--workers=3", kThreads, "--gpu=0,1"},
             "GPUs: 2, worker threads: 3, each of which needs a GPU of its own"},
        Case{"topology: RING",
             {"--workers=2", kThreads, "--coordinate=tcp://127.0.0.1:*"},
             "topology is RING, where all workers must reach each other"},
        Case{"", {"--workers=2", "--coordinate=inproc://a"}, "nobody outside of this program can join"}}) {
    folder.Write("solver.prototxt", solver + "distributed { " + c.settings + " }\n");
    const Finished run = folder.Run(c.flags);
    EXPECT_EQ(run.exit_code, 2) << c.message << "\n" << run.err;
    EXPECT_TRUE(run.Says(c.message)) << c.message << "\n" << run.err;
  }
  folder.Write("solver.prototxt", solver + "distributed { worker_threads: true }\n");
  const Finished run = folder.Run();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("distributed has no effect: neither local_workers nor endpoint is set")) << run.err;
  const Finished joined = RunProgram({"train", "--join=tcp://127.0.0.1:1", kThreads}, folder.setting());
  EXPECT_EQ(joined.exit_code, 2) << joined.err;
  EXPECT_TRUE(joined.Says("--worker_threads does not go with --join")) << joined.err;
}

}  // namespace
}  // namespace crema::testing_tools
