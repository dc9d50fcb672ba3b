// Ranks that fail, die, or are not started alike.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "mpi/mpirun.h"

namespace crema::testing_tools {
namespace {

using MpirunFailures = Mpirun;

TEST_F(MpirunFailures, ARankThatFailsSaysSoAndEndsAll) {
  Write(folder_, {.max_iter = 100000, .bad_record = 3});
  const auto run = Start({{3}});
  const Finished finished = run->Wait();
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_TRUE(finished.Says(" of 3, on machine \"")) << finished.err;
  EXPECT_TRUE(finished.Says("label 7")) << finished.err;
  EXPECT_EQ(Count(finished.err, "internal error"), 0) << finished.err;
  EXPECT_TRUE(ChildrenOf(run->pid()).empty());
}

// The others wait for its loss meanwhile, on the host, and have no end of their own to come to.
TEST_F(MpirunFailures, ARankWithAGpuThatFailsAloneSaysSoAndEndsAll) {
  Write(folder_, {.max_iter = 100000, .snapshot = 0, .cut_record = 3, .more = "test_initialization: false\n"});
  const Finished finished = Run({{2}}, {"--gpu=0,1"});
  if (finished.Says("no GPU") || finished.Says("there is no GPU 1")) GTEST_SKIP() << finished.err;
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_TRUE(finished.Says(" of 2, on machine \"")) << finished.err;
  EXPECT_TRUE(finished.Says("is not a readable Datum")) << finished.err;
}

TEST_F(MpirunFailures, ATestThatFailsEndsAll) {
  Write(folder_, {.max_iter = 20, .snapshot = 0, .cut_record = 3});
  const Finished finished = Run({{2}}, {"--gpu=0,1"});
  if (finished.Says("no GPU") || finished.Says("there is no GPU 1")) GTEST_SKIP() << finished.err;
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_TRUE(finished.Says("rank 0 of 2, on machine \"")) << finished.err;
  EXPECT_TRUE(finished.Says("is not a readable Datum")) << finished.err;
}

TEST_F(MpirunFailures, ALossThatIsNotFiniteEndsAll) {
  Write(folder_, {.max_iter = 1000, .snapshot = 0, .base_lr = "1e30"});
  const Finished finished = Run({{2}});
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_TRUE(finished.Says("Lower base_lr")) << finished.err;
}

TEST_F(MpirunFailures, AfterAKilledRankTrainingGoesOnFromASnapshot) {
  Write(folder_, {.max_iter = 100000, .snapshot = 20, .test_interval = 1000000});
  const auto run = Start({{2}});
  ASSERT_TRUE(run->WaitFor("tiny_iter_20.solverstate")) << run->Err();
  ASSERT_TRUE(run->WaitFor("Iteration 30 ")) << run->Err();
  const std::vector<pid_t> ranks = ChildrenOf(run->pid());
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[1], SIGKILL);
  const Finished finished = run->Wait();
  EXPECT_NE(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(finished.Says("signal 9")) << finished.err;
  const int newest = NewestState();
  ASSERT_GE(newest, 20);
  std::string solver = ReadText(folder_ / "solver.prototxt");
  solver.replace(solver.find("max_iter: 100000"), 16, "max_iter: " + std::to_string(newest + 15));
  folder_.Write("solver.prototxt", solver);
  ASSERT_EQ(Run({{2}}, {"--snapshot=auto"}).exit_code, 0);
  const std::string model = Model(newest + 15);
  RemoveSnapshots();
  ASSERT_EQ(Run({{2}}).exit_code, 0);
  EXPECT_EQ(model == Model(newest + 15), true);
}

TEST_F(MpirunFailures, RanksWhoseGpusWaitForASumForEverGiveUp) {
  if (!GpuIsEmulated()) {
    GTEST_SKIP() << "a real GPU ends its sums";
  }
  Write(folder_, {.max_iter = 100, .snapshot = 5, .test_interval = 1000000});
  const Ranks rank = {.variable = "CREMA_GPU_STALL_MS=1500 CREMA_EMULATED_SUMS=25"};
  const Finished finished = Run({rank, rank}, {"--gpu=0,1"});
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_TRUE(finished.Says(" of 2, on GPU ")) << finished.err;
  EXPECT_TRUE(finished.Says("has not ended in 1500 ms")) << finished.err;
  EXPECT_EQ(NewestState(), 10);
}

TEST_F(MpirunFailures, RanksWhoseGpusDoNotReachEachOtherGiveUp) {
  if (!GpuIsEmulated()) {
    GTEST_SKIP() << "real GPUs of one machine reach each other";
  }
  Write(folder_, {.max_iter = 100, .snapshot = 0, .test_interval = 1000000});
  const Ranks rank = {.variable = "CREMA_GPU_STALL_MS=500 CREMA_EMULATED_NCCL=apart"};
  const Finished finished = Run({rank, rank}, {"--gpu=0,1"});
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_TRUE(finished.Says("the GPUs have not been connected in 500 ms")) << finished.err;
}

TEST_F(MpirunFailures, ARankWhoseGpuFailsSaysSoAndEndsAll) {
  if (!GpuIsEmulated()) {
    GTEST_SKIP() << "a real GPU does not fail when it is told to";
  }
  Write(folder_, {.max_iter = 100, .snapshot = 0, .test_interval = 4});
  const Ranks rank = {.variable = "CREMA_EMULATED_FAULT=1:120"};
  const Finished finished = Run({rank, rank}, {"--gpu=0,1"});
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_TRUE(finished.Says("rank 1 of 2, on machine \"")) << finished.err;
  EXPECT_TRUE(finished.Says("failed: cudaErrorIllegalAddress")) << finished.err;
}

TEST_F(MpirunFailures, RanksMustRunTheSame) {
  Write(folder_, {.max_iter = 20, .snapshot = 0});
  std::string solver = ReadText(folder_ / "solver.prototxt");
  solver.replace(solver.find("base_lr: 0.02"), 13, "base_lr: 0.03");
  folder_.Write("other.prototxt", solver);
  const Finished solvers = Run({{2}, {.flags = {"--solver=other.prototxt"}}});
  EXPECT_EQ(solvers.exit_code, 2) << solvers.err;
  EXPECT_EQ(Count(solvers.err, "the solver file of rank 2, on machine \""), 1) << solvers.err;
  EXPECT_TRUE(solvers.Says("\"base_lr: 0.03\" where rank 0 has \"base_lr: 0.02\"")) << solvers.err;

  const ScratchFolder other;
  Write(other, {.max_iter = 20, .snapshot = 0, .hidden = 32});
  const std::vector<Ranks> apart = {{1}, {.folder = other.path()}};
  const Finished nets = Run(apart);
  EXPECT_EQ(nets.exit_code, 2) << nets.err;
  EXPECT_EQ(Count(nets.err, "the train net of rank 1, on machine \""), 1) << nets.err;
  EXPECT_TRUE(nets.Says("\"num_output: 32\" where rank 0 has \"num_output: 64\"")) << nets.err;

  std::filesystem::remove_all(other / "db");
  Write(other, {.max_iter = 20, .snapshot = 0, .bad_record = 0});
  const Finished data = Run(apart);
  EXPECT_EQ(data.exit_code, 2) << data.err;
  EXPECT_EQ(Count(data.err, "the data of layer \"data\" of rank 1, on machine \""), 1) << data.err;

  std::filesystem::remove_all(other / "db");
  const Finished absent = Run(apart);
  EXPECT_EQ(absent.exit_code, 2) << absent.err;
  EXPECT_EQ(Count(absent.err, "the data of layer \"data\" of rank 1, on machine \""), 1) << absent.err;
  EXPECT_EQ(Count(absent.err, "does not exist"), 1) << absent.err;
}

TEST_F(MpirunFailures, MistakesOfAllAreToldOnce) {
  Write(folder_, {.max_iter = 20, .snapshot = 0, .more = "lr_policy: \"none\"\n"});
  std::string solver = ReadText(folder_ / "solver.prototxt");
  solver.erase(solver.find("lr_policy: \"inv\"\n"), 17);
  folder_.Write("solver.prototxt", solver);
  const Finished finished = Run({{3}});
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_EQ(Count(finished.err, "unknown lr_policy"), 1) << finished.err;
  EXPECT_FALSE(finished.Says(" of 3")) << finished.err;

  std::filesystem::remove_all(folder_ / "db");
  Write(folder_, {.max_iter = 20, .more = "distributed { engine: MPI mode: ELASTIC }\n"});
  const Finished mode = Run({{2}});
  EXPECT_EQ(mode.exit_code, 2) << mode.err;
  EXPECT_EQ(Count(mode.err, "engine: MPI trains by mode GRADIENT, and mode is ELASTIC"), 1) << mode.err;
}

TEST_F(MpirunFailures, ASnapshotThatCannotBeWrittenIsToldAndTrainingGoesOn) {
  Write(folder_, {.max_iter = 30, .snapshot = 10, .test_interval = 1000000});
  const auto run = Start({{2}});
  ASSERT_TRUE(run->WaitFor("Iteration 0 ")) << run->Err();
  // Only the first rank writes; where it cannot, all go on to the end, and wait there.
  std::filesystem::create_directory(folder_ / "tiny_iter_30.caffemodel");
  folder_.Write("tiny_iter_30.caffemodel/in_the_way", "");
  ASSERT_TRUE(run->WaitFor("the snapshot is tried again every")) << run->Err();
  run->Signal(SIGUSR2);
  const Finished finished = run->Wait();
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_TRUE(HasState(20)) << finished.err;
  EXPECT_FALSE(HasState(30)) << finished.err;
  EXPECT_TRUE(finished.Says("Optimization Done")) << finished.err;
}

// Those below need neither mpirun nor MPI.
class EngineFlag : public ::testing::Test {
 protected:
  Finished Train(const std::vector<std::string>& flags, const std::vector<std::string>& variables = {}) {
    std::vector<std::string> words = {"/usr/bin/env"};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {std::string(CREMA_BIN_DIR) + "/train", "--solver=solver.prototxt", "--threads=1"});
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(words, {.folder = folder_.path()});
  }
  void Expect(const Finished& finished, int exit_code, const std::string& text) {
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_TRUE(finished.Says(text)) << finished.err;
  }

  ScratchFolder folder_;
};

TEST_F(EngineFlag, GoesWithSomeFlagsOnly) {
  WriteTinyTraining(folder_, {.max_iter = 2, .snapshot = 0, .test_interval = 1000000});
  Expect(Train({"--engine=mpi"}), 2, "MPI or ZMQ was expected");
  Expect(Train({"--engine=MPI", "--workers=2"}), 2, "--workers does not go with engine: MPI");
  Expect(Train({"--engine=MPI", "--timeline=a.json"}), 2, "--timeline does not go with engine: MPI");
  const std::string solver = ReadText(folder_ / "solver.prototxt");
  folder_.Write("solver.prototxt", solver + "distributed { mode: OFF }\n");
  Expect(Train({"--engine=MPI"}), 2, "mode: OFF");
}

TEST_F(EngineFlag, SaysHowToGetTheLibrary) {
  WriteTinyTraining(folder_, {.max_iter = 2, .snapshot = 0, .test_interval = 1000000});
  Expect(Train({"--engine=MPI"}, {"CREMA_MPI_LIBRARY=/nowhere/libcrema_mpi.so"}), 1, "libopenmpi-dev openmpi-bin");
  folder_.Write("libcrema_mpi.so", "no library");
  Expect(Train({"--engine=MPI"}, {"CREMA_MPI_LIBRARY=" + (folder_ / "libcrema_mpi.so").string()}), 1, "does not load");
}

TEST_F(EngineFlag, ManyThatTrainAloneAreWarned) {
  WriteTinyTraining(folder_, {.max_iter = 2, .snapshot = 0, .test_interval = 1000000});
  Expect(Train({}, {"PMI_SIZE=4"}), 0, "the launcher started 4 processes, and each of them trains for itself");
  if (const std::string why = WhyNoRanks(); !why.empty()) GTEST_SKIP() << why;
  Expect(Train({"--engine=MPI"}, {"MPI_LOCALNRANKS=4"}), 1, "started 4 processes, but each finds itself alone");
}

TEST_F(EngineFlag, WarnsOfSettingsWithoutEffect) {
  if (const std::string why = WhyNoRanks(); !why.empty()) GTEST_SKIP() << why;
  WriteTinyTraining(folder_, {.max_iter = 2,
                              .snapshot = 0,
                              .test_interval = 1000000,
                              .more = "distributed { engine: MPI mode: GRADIENT codec: INT8 local_workers: 2 }\n"});
  Expect(Train({}), 0, "no effect with engine: MPI, where the launcher says who takes part: local_workers, codec");
}

}  // namespace
}  // namespace crema::testing_tools
