// The real `train` with lengths in epochs, of 230 records in batches of 16, in every way to train.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tools/patterns.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

class Epochs : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteTinyTraining(folder_, {.max_iter = 300, .more = "distributed { local_steps: 5 }"});
    const std::string solver =
        Replaced(ReadText(folder_ / "solver.prototxt"), "max_iter: 300", "in_epochs { max_iter: 4 }");
    ASSERT_NE(solver.find("in_epochs"), std::string::npos);
    folder_.Write("solver.prototxt", solver);
  }
  Finished Train(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"train", "--solver=solver.prototxt", "--threads=1"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(Epochs, OfOneProcess) {
  const Finished run = Train({});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("an epoch is 230 records of layer \"data\", 16 in an iteration: max_iter 60")) << run.err;
  EXPECT_TRUE(fs::exists(folder_ / "tiny_iter_60.caffemodel")) << run.err;
}

TEST_F(Epochs, OfWorkersTakeTheRecordsOfAll) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--workers=2"}, {"--workers=2", "--worker_threads"}}) {
    fs::remove(folder_ / "tiny_iter_32.caffemodel");
    const Finished run = Train(flags);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(run.Says("32 in an iteration: max_iter 32")) << run.err;
    EXPECT_TRUE(fs::exists(folder_ / "tiny_iter_32.caffemodel")) << run.err;
  }
}

TEST_F(Epochs, OfTestsReadTheSameRecordsEachTime) {
  std::string solver =
      Replaced(ReadText(folder_ / "solver.prototxt"), "max_iter: 4 ", "max_iter: 4 test_iter: 1 test_interval: 1 ");
  for (const char* line : {"test_iter: 10\n", "test_interval: 50\n"}) solver = Replaced(solver, line, "");
  folder_.Write("solver.prototxt", Replaced(solver, "base_lr: 0.02", "base_lr: 1e-20"));
  folder_.Write("net.prototxt", Replaced(ReadText(folder_ / "net.prototxt"), "batch_size: 23", "batch_size: 25"));
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{{}, {"--workers=2"}}) {
    const Finished run = Train(flags);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto losses = FindAll(run.err, R"(Test net output #1: (\S+ = \S+) )");
    ASSERT_GE(losses.size(), 4u) << run.err;
    for (const std::string& loss : losses) EXPECT_EQ(loss, losses[0]) << run.err;
    EXPECT_FALSE(run.Says("goes on where the one before ended")) << run.err;
  }
}

TEST_F(Epochs, AskForTheDataAtTheCoordinator) {
  const std::string net = ReadText(folder_ / "net.prototxt");
  folder_.Write("net.prototxt",
                Replaced(net, "include \\{ phase: TRAIN \\}([^]*?)\"db\"", "include { phase: TRAIN }$1\"elsewhere\""));
  const Finished run = Train({"--coordinate=tcp://127.0.0.1:*", "--expect=1"});
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(run.Says("its data is not here")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
