// The real `train` with several workers: what it learns, what it leaves behind, and how it is asked and told.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

TEST(Cluster, LocalWorkersLearnAsOneAloneAndLogInCaffesWords) {
  const ClusterFolder alone("", {.max_iter = 400, .snapshot = 0}), four("", {.max_iter = 100, .snapshot = 50});
  four.Write("solver.prototxt", ReadText(four / "solver.prototxt") + Distributed("local_workers: 4 local_steps: 5"));
  const Finished single = alone.Run(), run = four.Run();
  ASSERT_EQ(single.exit_code, 0) << single.err;
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(LastAccuracy(single.err), 0.9f);
  EXPECT_GT(LastAccuracy(run.err), LastAccuracy(single.err) - 0.05f) << run.err;
  for (const char* pattern :
       {R"(\] Solving Tiny\n)", R"(\] waiting for workers: \d of 4 are there)",
        R"(\] worker local-\d joined in place [0-3] \(4 workers\)\n)",
        R"(\] Iteration 50 \(\S+ iter/s, \S+s/10 iters\), loss = [\d.e-]+\n)",
        R"(\]     Train net output #0: loss = \S+ \(\* 1 = \S+ loss\)\n)", R"(\] Iteration 50, lr = 0\.0[\d]+\n)",
        R"(\] Iteration 50, Testing net \(#0\)\n)", R"(\]     Test net output #0: accuracy = )",
        R"(\] Snapshotting to binary proto file tiny_iter_50\.caffemodel\n)",
        R"(\] Snapshotting solver state to binary proto file tiny_iter_100\.solverstate\n)",
        R"(\] Optimization Done\.\n)"}) {
    EXPECT_TRUE(Matches(run.err, pattern)) << pattern << "\n" << run.err;
  }
  EXPECT_EQ(Count(run.err, "Optimization Done."), 1) << "workers are quiet: " << run.err;
  EXPECT_EQ(run.out, "");
  const JournalAudit audit = AuditJournal(four, 100);
  EXPECT_EQ(audit.mistake, "");
  EXPECT_EQ(audit.version, 20u);
  EXPECT_EQ(audit.used, 400u);
}

struct ClusterWay {
  const char* name;
  const char* settings;
  const char* solver;
};

std::ostream& operator<<(std::ostream& out, const ClusterWay& way) { return out << way.name; }

class ClusterWays : public ::testing::TestWithParam<ClusterWay> {
 protected:
  TinyTraining Training() const { return {.max_iter = 60, .snapshot = 20, .more = GetParam().solver}; }
};

// Stopped, killed and not: the same membership leads to the same bits.
TEST_P(ClusterWays, RerunsAndResumedRunsAreTheSameToTheBit) {
  const std::string settings = std::string("local_workers: 2 local_steps: 5 ") + GetParam().settings;
  const ClusterFolder whole(settings, Training()), again(settings, Training()), killed(settings, Training());
  const Finished run = whole.Run();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  ASSERT_EQ(again.Run().exit_code, 0);
  EXPECT_TRUE(SameModel(whole, again, 60));
  EXPECT_TRUE(SameModel(whole, again, 40));
  EXPECT_EQ(AuditJournal(whole, 60).mistake, "");

  {
    const auto running = killed.Start();
    ASSERT_TRUE(running->WaitFor("Snapshotting solver state")) << running->Err();
    running->Signal(SIGKILL);
    running->Wait();
    EXPECT_TRUE(ProcessesLeftIn(killed.path()).empty()) << "workers outlive their coordinator";
  }
  const Finished resumed = killed.Run({"--snapshot=auto"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(resumed.Says("Resuming from tiny_iter_") || resumed.Says("Iteration 60")) << resumed.err;
  EXPECT_TRUE(SameModel(whole, killed, 60)) << resumed.err;
  EXPECT_EQ(AuditJournal(killed, 60).mistake, "");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ClusterWays,
    ::testing::Values(ClusterWay{"LocalHistory", "", ""}, ClusterWay{"MeanHistory", "history: MEAN", ""},
                      ClusterWay{"ResetHistory", "history: RESET", ""},
                      ClusterWay{"OuterMomentum", "outer_momentum: 0.6 outer_nesterov: true outer_lr: 0.8", ""},
                      ClusterWay{"BlockMomentum", "outer_momentum_by_workers: true outer_nesterov: true history: RESET",
                                 ""},
                      ClusterWay{"GradientWithAdam", "mode: GRADIENT", "type: \"Adam\" momentum2: 0.99\n"}),
    [](const auto& info) { return std::string(info.param.name); });

// Drained at a round of its own choice: with LOCAL, a snapshot averages histories, so that this is no test for it.
class ClusterDrain : public ClusterWays {};

TEST_P(ClusterDrain, CtrlCWritesASnapshotThatGoesOnExactly) {
  const std::string settings = std::string("local_workers: 2 local_steps: 5 ") + GetParam().settings;
  TinyTraining training = Training();
  training.max_iter = 200;
  training.snapshot = 0;
  const ClusterFolder whole(settings, training), stopped(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  const auto running = stopped.Start();
  ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
  running->Signal(SIGINT);
  const Finished first = running->Wait();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(first.Says("stopping when the round is done; once more to stop at once")) << first.err;
  EXPECT_TRUE(first.Says("Optimization stopped early.")) << first.err;
  const int at = stopped.NewestState();
  ASSERT_GT(at, 0) << first.err;
  ASSERT_LT(at, 200);
  EXPECT_EQ(AuditJournal(stopped, at).mistake, "");
  const Finished second = stopped.Run({"--snapshot=auto"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(second.Says("Restored iteration " + std::to_string(at))) << second.err;
  EXPECT_TRUE(SameModel(stopped, whole, 200)) << "stopped at " << at;
  EXPECT_EQ(AuditJournal(stopped, 200).mistake, "");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ClusterDrain,
    ::testing::Values(ClusterWay{"MeanHistory", "history: MEAN", ""}, ClusterWay{"ResetHistory", "history: RESET", ""},
                      ClusterWay{"OuterMomentum", "outer_momentum: 0.6 outer_nesterov: true history: MEAN", ""},
                      ClusterWay{"GradientWithAdam", "mode: GRADIENT", "type: \"Adam\" momentum2: 0.99\n"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Cluster, WithLocalHistoryADrainedTrainingGoesOn) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5", {.max_iter = 200, .snapshot = 0});
  const auto running = folder.Start();
  ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
  running->Signal(SIGINT);
  const Finished first = running->Wait();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Finished second = folder.Run({"--snapshot=auto"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_GT(LastAccuracy(second.err), 0.9f) << second.err;
  EXPECT_EQ(AuditJournal(folder, 200).mistake, "");
}

// Without dropout and augmentation the batches of N workers are those of one with N times the batch.
TEST(Cluster, GradientsAreThoseOfALargerBatch) {
  for (const char* solver : {"", "type: \"Adam\" momentum2: 0.99\n", "clip_gradients: 0.5\n"}) {
    const ClusterFolder alone("", {.max_iter = 40, .snapshot = 0, .base_lr = "0.01", .more = solver});
    const ClusterFolder two("mode: GRADIENT local_workers: 2",
                            {.max_iter = 40, .snapshot = 0, .base_lr = "0.01", .more = solver});
    for (const ClusterFolder* folder : {&alone, &two}) {
      std::string net = ReadText(*folder / "net.prototxt");
      net = Replaced(net, R"(layer \{ name: "drop1".*\n)", "");
      if (folder == &alone) net = Replaced(net, "batch_size: 16", "batch_size: 32");
      folder->Write("net.prototxt", net);
    }
    const Finished single = alone.Run(), run = two.Run();
    ASSERT_EQ(single.exit_code, 0) << single.err;
    ASSERT_EQ(run.exit_code, 0) << run.err;
    // Sums of f32 in another order, over 40 updates.
    EXPECT_LT(Difference(alone.Model(40), two.Model(40)), 1e-3) << solver;
    EXPECT_NEAR(LastAccuracy(single.err), LastAccuracy(run.err), 0.01f);
    EXPECT_EQ(AuditJournal(two, 40).mistake, "");
  }
}

TEST(Cluster, TheIterationsOfARoundTookTheSameTime) {
  const ClusterFolder folder(
      "local_workers: 1 local_steps: 20",
      {.max_iter = 60, .snapshot = 0, .test_interval = 1000, .more = "test_initialization: false\n"});
  folder.Write("solver.prototxt", Replaced(ReadText(folder / "solver.prototxt"), "display: \\d+", "display: 5"));
  const Finished run = folder.Run();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::map<int, double> seconds;
  const std::string line = R"(Iteration (\d+) \([^,]+ iter/s, ([^s]+)s/5 iters\))";
  const std::vector<std::string> iterations = FindAll(run.err, line, 1), times = FindAll(run.err, line, 2);
  for (size_t i = 0; i < iterations.size(); ++i) seconds[std::stoi(iterations[i])] = std::stod(times[i]);
  ASSERT_EQ(seconds.size(), 11u) << run.err;
  for (const int begin : {20, 40}) {
    EXPECT_GT(seconds[begin + 5], 0) << run.err;
    for (const int later : {10, 15}) EXPECT_NEAR(seconds[begin + later], seconds[begin + 5], 1e-5) << run.err;
  }
}

// Also those of a layer that training does not change, which no round brings.
TEST(Cluster, WeightsTravelToWorkers) {
  const ClusterFolder base("", {.max_iter = 20}), alone("", {.max_iter = 40, .more = "random_seed: 9\n"});
  const ClusterFolder one("mode: GRADIENT local_workers: 1", {.max_iter = 40, .more = "random_seed: 9\n"});
  ASSERT_EQ(base.Run().exit_code, 0);
  for (const ClusterFolder* folder : {&alone, &one}) {
    std::string net = ReadText(*folder / "net.prototxt");
    const std::string type = "type: \"Convolution\"\n";
    net.insert(net.find(type) + type.size(), "param { lr_mult: 0 } param { lr_mult: 0 }\n");
    folder->Write("net.prototxt", net);
    std::string solver = ReadText(*folder / "solver.prototxt");
    solver = Replaced(solver, "random_seed: 5\n?", "");
    folder->Write("solver.prototxt", solver);
    const Finished run = folder->Run({"--weights=" + (base / "tiny_iter_20.caffemodel").string()});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  EXPECT_TRUE(SameModel(alone, one, 40));
  EXPECT_GT(Difference(alone.Model(40), base.Model(20)), 0);
}

// More numbers than a message may hold.
TEST(Cluster, LargeOutputsStayWithWorkers) {
  const ClusterFolder folder("local_workers: 2 join_timeout_ms: 5000", {.max_iter = 20});
  folder.Write("net.prototxt",
               ReadText(folder / "net.prototxt") +
                   "layer { name: \"map\" type: \"Convolution\" bottom: \"data\" top: \"map\"\n"
                   "  include { phase: TRAIN } convolution_param { num_output: 500 kernel_size: 1 } }\n");
  const Finished run = folder.Run();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Train net output #0: loss")) << run.err;
  EXPECT_FALSE(run.Says("Train net output #1: map")) << run.err;
}

TEST(Cluster, LearnsWithCodes) {
  for (const char* codes : {"codec: INT8 down_codec: INT8", "codec: TOPK topk_ratio: 0.2 codec_warmup_rounds: 2",
                            "codec: FP16 down_codec: BF16 mode: GRADIENT"}) {
    const ClusterFolder folder(std::string("local_workers: 2 local_steps: 5 ") + codes, {.max_iter = 200});
    const Finished run = folder.Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << codes << "\n" << run.err;
    EXPECT_EQ(AuditJournal(folder, 200).mistake, "");
  }
}

TEST(Cluster, ModeOffIsPlainTraining) {
  const ClusterFolder plain("", {.max_iter = 40}), off("mode: OFF local_workers: 3", {.max_iter = 40});
  ASSERT_EQ(plain.Run().exit_code, 0);
  const Finished run = off.Run();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(SameModel(plain, off, 40));
  EXPECT_EQ(ReadText(plain / "tiny_iter_40.solverstate"), ReadText(off / "tiny_iter_40.solverstate"));
  EXPECT_FALSE(fs::exists(off / "tiny_cluster.journal"));
}

TEST(Cluster, WorkersOfOtherFoldersAndLocalOnesLearnTheSame) {
  const ClusterFolder local("local_workers: 2 local_steps: 5", {.max_iter = 40});
  const ClusterFolder joined("local_steps: 5", {.max_iter = 40});
  ASSERT_EQ(local.Run().exit_code, 0);
  const ClusterFolder elsewhere("");
  fs::rename(elsewhere / "db", elsewhere / "copy");
  std::string endpoint;
  const auto coordinator = joined.Coordinate(2, &endpoint);
  const auto one = elsewhere.Join(endpoint, "one", {"--data=" + (elsewhere / "copy").string()});
  const auto two = joined.Join(endpoint, "two");
  const Finished run = coordinator->Wait(), first = one->Wait(), second = two->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(run.Says("worker one joined in place ")) << run.err;
  EXPECT_TRUE(first.Says("] Joining the training at " + endpoint)) << first.err;
  EXPECT_TRUE(Matches(first.err, R"(\] Joined in place [01]\n)")) << first.err;
  EXPECT_TRUE(first.Says("] Done: all iterations are done (8 rounds, 640 examples)")) << first.err;
  EXPECT_TRUE(SameModel(local, joined, 40));
}

TEST(Cluster, CtrlCTwiceStopsAtOnce) {
  for (const std::string threads : {"false", "true"}) {
    SCOPED_TRACE("worker_threads: " + threads);
    // A round takes long.
    const ClusterFolder folder("local_workers: 2 local_steps: 100000 history: RESET worker_threads: " + threads,
                               {.max_iter = 100000, .snapshot = 0, .test_interval = 100000});
    const auto running = folder.Start();
    ASSERT_TRUE(running->WaitFor("joined in place ", 2)) << running->Err();
    running->Signal(SIGINT);
    ASSERT_TRUE(running->WaitFor("once more to stop at once")) << running->Err();
    running->Signal(SIGINT);
    const Finished run = running->Wait();
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(run.Says("stopping at once")) << run.err;
    EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
    EXPECT_EQ(folder.NewestState(), 0) << run.err;
  }
}

TEST(Cluster, SighupWritesASnapshotAndTrainingGoesOn) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5", {.max_iter = 100000, .snapshot = 0});
  const auto running = folder.Start();
  ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
  running->Signal(SIGHUP);
  ASSERT_TRUE(running->WaitFor("Snapshotting solver state")) << running->Err();
  const int at = folder.NewestState();
  EXPECT_GT(at, 0);
  ASSERT_TRUE(running->WaitFor("Iteration " + std::to_string((at / 10 + 2) * 10) + ", lr")) << running->Err();
  running->Signal(SIGINT);
  EXPECT_EQ(running->Wait().exit_code, 0);
}

TEST(Cluster, ItIsAskedAndDrainedFromOutside) {
  const ClusterFolder folder("local_steps: 5 history: MEAN min_workers: 1", {.max_iter = 100000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  ASSERT_TRUE(coordinator->WaitFor("Iteration 20, lr")) << coordinator->Err();
  const Finished status = folder.Ask("status", endpoint);
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_TRUE(Matches(status.out, R"(training: iteration \d+ of 100000, round \d+, loss )")) << status.out;
  EXPECT_TRUE(Matches(status.out, R"(\n +[01] +one  +(training|waiting) +(\d+|-) )")) << status.out;
  EXPECT_TRUE(Matches(status.out, R"(\n +[01] +two  )")) << status.out;

  // A worker that is asked to stop leaves; the other goes on.
  one->Signal(SIGINT);
  const Finished left = one->Wait();
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_TRUE(left.Says("] Done: stopped (")) << left.err;
  ASSERT_TRUE(coordinator->WaitFor("worker one (place")) << coordinator->Err();
  ASSERT_TRUE(coordinator->WaitFor(" left: stopped (1 workers)")) << coordinator->Err();
  const int lines = Count(coordinator->Err(), ", lr = ");
  ASSERT_TRUE(coordinator->WaitFor(", lr = ", lines + 2)) << coordinator->Err();

  const Finished drain = folder.Ask("drain", endpoint);
  EXPECT_EQ(drain.exit_code, 0) << drain.err;
  const Finished run = coordinator->Wait(), second = two->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("] asked to drain: training ends when the round is done")) << run.err;
  EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(second.Says("] Done: drained on request")) << second.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "");
}

TEST(Cluster, ItIsStoppedFromOutside) {
  const ClusterFolder folder("local_steps: 100000 history: RESET",
                             {.max_iter = 100000, .snapshot = 0, .test_interval = 100000});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const auto worker = folder.Join(endpoint, "one");
  ASSERT_TRUE(coordinator->WaitFor("worker one joined")) << coordinator->Err();
  const Finished stop = folder.Ask("stop", endpoint);
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  const Finished run = coordinator->Wait(), left = worker->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("] asked to stop: training ends without the round")) << run.err;
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_TRUE(left.Says("stopped on request")) << left.err;
}

TEST(Cluster, NobodyThereIsTold) {
  const ClusterFolder folder("");
  const Finished run = folder.Ask("status", "ipc://" + (folder / "nobody").string());
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("no coordinator answers at ipc://")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
