// Training by ranks that mpirun starts: what comes of it.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "mpi/mpirun.h"

namespace crema::testing_tools {
namespace {

TEST_F(Mpirun, TwoRanksAreOneThatSumsOverTwoBatches) {
  for (const std::string rule : {"", "clip_gradients: 0.5\n", "type: \"Adam\"\n"}) {
    SCOPED_TRACE(rule);
    const ScratchFolder apart;
    Write(folder_, {.max_iter = 30, .snapshot = 0, .more = rule});
    const Finished ranks = Run({{2}});
    ASSERT_EQ(ranks.exit_code, 0) << ranks.err;
    EXPECT_TRUE(ranks.Says("MPI: 2 ranks on one machine")) << ranks.err;
    EXPECT_EQ(Count(ranks.err, "Optimization Done"), 1) << ranks.err;
    const std::string model = Model(30);
    RemoveSnapshots();
    std::filesystem::remove_all(folder_ / "db");
    // A clipped sum over two batches is twice as long.
    const std::string doubled = rule.starts_with("clip") ? "clip_gradients: 1\n" : rule;
    Write(folder_, {.max_iter = 30, .snapshot = 0, .more = doubled + "iter_size: 2\n"});
    const Finished alone = RunAlone();
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    EXPECT_EQ(model == Model(30), true);
    std::filesystem::remove_all(folder_ / "db");
  }
}

TEST_F(Mpirun, ThreeRanksAreOneThatSumsOverThreeBatches) {
  Write(folder_, {.max_iter = 30, .snapshot = 0});
  const Finished ranks = Run({{3}});
  ASSERT_EQ(ranks.exit_code, 0) << ranks.err;
  const std::string model = Model(30);
  RemoveSnapshots();
  ASSERT_EQ(Run({{3}}).exit_code, 0);
  EXPECT_EQ(model == Model(30), true) << "another run has other bits";
  const std::string solver = ReadText(folder_ / "solver.prototxt");
  folder_.Write("solver.prototxt", solver + "iter_size: 3\n");
  const Finished alone = RunAlone();
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_LT(Difference(model, Model(30)), 1e-4);
}

TEST_F(Mpirun, GoesOnWithTheSameBits) {
  Write(folder_, {.max_iter = 40, .snapshot = 20});
  ASSERT_EQ(Run({{2}}).exit_code, 0);
  const std::string model = Model(40);
  std::filesystem::remove(folder_ / "tiny_iter_40.solverstate");
  std::filesystem::remove(folder_ / "tiny_iter_40.caffemodel");
  const Finished resumed = Run({{2}}, {"--snapshot=auto"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(resumed.Says("tiny_iter_20.solverstate")) << resumed.err;
  EXPECT_EQ(Count(resumed.err, "Restoring"), Count(RunAlone({"--snapshot=auto"}).err, "Restoring"));
  EXPECT_EQ(model == Model(40), true);
}

TEST_F(Mpirun, SnapshotsAreTheFirstRanks) {
  // Rank 1 has a disk of its own, without snapshots, and weights of its own are not asked for.
  const ScratchFolder other;
  Write(folder_, {.max_iter = 40, .snapshot = 20});
  Write(other, {.max_iter = 40, .snapshot = 20});
  const std::vector<Ranks> apart = {{1}, {.folder = other.path()}};
  ASSERT_EQ(Run(apart).exit_code, 0);
  const std::string model = Model(40);
  EXPECT_FALSE(std::filesystem::exists(other / "tiny_iter_40.caffemodel"));
  std::filesystem::remove(folder_ / "tiny_iter_40.solverstate");
  const Finished resumed = Run(apart, {"--snapshot=auto"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(model == Model(40), true);
  // The seed of a run that draws one is the first rank's, too.
  std::string solver = ReadText(folder_ / "solver.prototxt");
  solver.erase(solver.find("random_seed: 5"), 14);
  folder_.Write("solver.prototxt", solver);
  other.Write("solver.prototxt", solver);
  const Finished drawn = Run(apart);
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_FALSE(drawn.Says("were not those of rank 0")) << drawn.err;
}

TEST_F(Mpirun, StopsWhenMpirunPassesOnSigusr2) {
  Write(folder_, {.max_iter = 100000, .snapshot = 0, .test_interval = 1000000});
  const auto run = Start({{3}});
  ASSERT_TRUE(run->WaitFor("Iteration 10 ")) << run->Err();
  run->Signal(SIGUSR1);
  ASSERT_TRUE(run->WaitFor("Snapshotting solver state")) << run->Err();
  const int first = NewestState();
  ASSERT_TRUE(run->WaitFor("Iteration", Count(run->Err(), "Iteration") + 4));
  run->Signal(SIGUSR2);
  const Finished finished = run->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(finished.Says("Optimization stopped early")) << finished.err;
  const int last = NewestState();
  EXPECT_GT(last, first);
  // And on from there, to the bits of a run that never stopped.
  std::string solver = ReadText(folder_ / "solver.prototxt");
  solver.replace(solver.find("max_iter: 100000"), 16, "max_iter: " + std::to_string(last + 5));
  folder_.Write("solver.prototxt", solver);
  ASSERT_EQ(Run({{3}}, {"--snapshot=auto"}).exit_code, 0);
  const std::string model = Model(last + 5);
  RemoveSnapshots();
  ASSERT_EQ(Run({{3}}).exit_code, 0);
  EXPECT_EQ(model == Model(last + 5), true);
}

TEST_F(Mpirun, CtrlCWritesASnapshotInTheTimeThatMpirunLeaves) {
  if (const int major = MajorOfMpirun(); major != 4) {
    GTEST_SKIP() << "the mpirun of Open MPI " << major << " kills ranks a quarter of a second after its first signal";
  }
  Write(folder_, {.max_iter = 10000000, .snapshot = 0, .test_interval = 10000000});
  // Interrupted, mpirun reads no log any more: a rank that says much would wait for it.
  std::string solver = ReadText(folder_ / "solver.prototxt");
  solver.replace(solver.find("display: 10"), 11, "display: 10000000");
  folder_.Write("solver.prototxt", solver);
  for (const int signal : {SIGINT, SIGTERM}) {
    // With time for it on a busy machine; mpirun waits so long in any case.
    const auto run = Start({{2}}, {}, {"--mca", "odls_base_sigkill_timeout", "10"});
    ASSERT_TRUE(run->WaitFor("Iteration 0, lr")) << run->Err();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    run->Signal(signal);
    const Finished finished = run->Wait();
    EXPECT_TRUE(finished.Says("Optimization stopped early")) << finished.err;
    EXPECT_GE(NewestState(), 1) << finished.err;
    RemoveSnapshots();
  }
}

// configs/cluster/mpi/mpirun.sh.
TEST_F(Mpirun, CtrlCOfTheScriptWritesASnapshot) {
  Write(folder_, {.max_iter = 10000000, .snapshot = 0, .test_interval = 10000000});
  std::vector<std::string> words = Command({{2}});
  // As from a terminal: the signal comes to all of a process group.
  words[1] = "setsid";
  words.insert(words.begin() + 2, std::string(CREMA_SOURCE_DIR) + "/configs/cluster/mpi/mpirun.sh");
  for (const int signal : {SIGINT, SIGTERM}) {
    Running run(words, {.folder = folder_.path()});
    ASSERT_TRUE(run.WaitFor("Iteration 10 ")) << run.Err();
    kill(-run.pid(), SIGHUP);
    ASSERT_TRUE(run.WaitFor("Snapshotting solver state")) << run.Err();
    const int first = NewestState();
    ASSERT_TRUE(run.WaitFor("Iteration", Count(run.Err(), "Iteration") + 4));
    kill(-run.pid(), signal);
    const Finished finished = run.Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_TRUE(finished.Says("Optimization stopped early")) << finished.err;
    EXPECT_GT(NewestState(), first) << finished.err;
    RemoveSnapshots();
  }
  EXPECT_EQ(RunProgram({words[2]}).exit_code, 2);
}

TEST_F(Mpirun, WhatOneRankIsAskedAllDo) {
  Write(folder_, {.max_iter = 100000, .snapshot = 0, .test_interval = 1000000});
  const auto run = Start({{2}});
  ASSERT_TRUE(run->WaitFor("Iteration 10 ")) << run->Err();
  const std::vector<pid_t> ranks = ChildrenOf(run->pid());
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[1], SIGHUP);
  ASSERT_TRUE(run->WaitFor("Snapshotting solver state")) << run->Err();
  kill(ranks[1], SIGTERM);
  const Finished finished = run->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(finished.Says("Optimization stopped early")) << finished.err;
  EXPECT_EQ(Count(finished.err, "Snapshotting solver state"), 2) << finished.err;
}

TEST_F(Mpirun, RanksTakeTheGpusOfTheirMachineInTurn) {
  Write(folder_, {.max_iter = 3, .snapshot = 2});
  const Finished threads = RunAlone({"--gpu=0,1"});
  if (threads.exit_code != 0) GTEST_SKIP() << "there are no two GPUs: " << threads.err;
  const std::string model = Model(3);
  RemoveSnapshots();
  const Finished ranks = Run({{2}}, {"--gpu=0,1"});
  ASSERT_EQ(ranks.exit_code, 0) << ranks.err;
  EXPECT_EQ(model == Model(3), true);
  const Finished too_many = Run({{3}}, {"--gpu=0,1"});
  EXPECT_EQ(too_many.exit_code, 2) << too_many.err;
  EXPECT_TRUE(too_many.Says("--gpu=0,1 names 2 GPUs, and there are 3 ranks on machine")) << too_many.err;
  // As srun --gpus-per-task=1 shows them: each is the only one there is, number 0.
  RemoveSnapshots();
  const Finished own =
      Run({{.variable = "CUDA_VISIBLE_DEVICES=1"}, {.variable = "CUDA_VISIBLE_DEVICES=0"}}, {"--gpu=0"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  const Finished mixed = Run({{1, {"--gpu=0,1"}}, {1}});
  EXPECT_EQ(mixed.exit_code, 2) << mixed.err;
  EXPECT_TRUE(mixed.Says("\"the CPU\" where rank 0 has \"a GPU\"")) << mixed.err;
}

TEST_F(Mpirun, OneProcessWithoutMpirunTrainsAsEver) {
  Write(folder_, {.max_iter = 20, .snapshot = 0});
  const Finished rank = RunAlone({"--engine=MPI"});
  ASSERT_EQ(rank.exit_code, 0) << rank.err;
  EXPECT_TRUE(rank.Says("there is one rank only")) << rank.err;
  const std::string model = Model(20);
  RemoveSnapshots();
  const Finished alone = RunAlone();
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_FALSE(alone.Says("rank")) << alone.err;
  EXPECT_EQ(model == Model(20), true);
}

}  // namespace
}  // namespace crema::testing_tools
