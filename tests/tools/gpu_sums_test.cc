// `train` on several GPUs whose sums do not end.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "source_folder.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

class GpuSums : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!GpuIsEmulated()) {
      GTEST_SKIP() << "real GPUs, of which there may be none, end their sums";
    }
  }
  static Finished Train(const ScratchFolder& folder, const std::vector<std::string>& variables,
                        const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = {"/usr/bin/env"};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {ProgramFolder() + "/train", "--solver=solver.prototxt", "--gpu=0,1"});
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(words, {.folder = folder.path()});
  }
};

TEST_F(GpuSums, ThatDoNotEndEndTrainingWhichGoesOnFromASnapshot) {
  const ScratchFolder stopped, whole;
  for (const ScratchFolder* folder : {&stopped, &whole}) {
    WriteTinyTraining(*folder, {.max_iter = 20, .snapshot = 5, .test_interval = 1000000});
  }
  // Two in each iteration, of the loss and of the gradients.
  const Finished run = Train(stopped, {"CREMA_EMULATED_SUMS=25", "CREMA_GPU_STALL_MS=1500"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says(" of 2, on GPU ")) << run.err;
  EXPECT_TRUE(run.Says("has not ended in 1500 ms")) << run.err;
  EXPECT_TRUE(run.Says("--snapshot=auto")) << run.err;
  EXPECT_EQ(ReadText(stopped / "tiny_iter_15.caffemodel"), "");
  EXPECT_EQ(Train(stopped, {}, {"--snapshot=auto"}).exit_code, 0);
  EXPECT_EQ(Train(whole, {}).exit_code, 0);
  const std::string model = ReadText(whole / "tiny_iter_20.caffemodel");
  EXPECT_EQ(model.empty(), false);
  EXPECT_EQ(ReadText(stopped / "tiny_iter_20.caffemodel") == model, true);
}

// What is under way on such a GPU cannot be waited for: neither by who gives the sums up, nor where memory is freed.
TEST_F(GpuSums, OfAGpuThatNoLongerAnswersEndTraining) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 20, .snapshot = 0, .test_interval = 1000000});
  // What it holds is given up, not given back.
  const Finished run = Train(folder, {"CREMA_EMULATED_NCCL=stuck", "CREMA_EMULATED_SUMS=25", "CREMA_GPU_STALL_MS=1000",
                                      "ASAN_OPTIONS=detect_leaks=0"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("has not ended in 1000 ms")) << run.err;
}

TEST_F(GpuSums, ThatFailEndTraining) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 20, .snapshot = 0, .test_interval = 1000000});
  const Finished run = Train(folder, {"CREMA_EMULATED_NCCL=fails", "CREMA_EMULATED_SUMS=25"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("summing over GPUs failed: remote process exited")) << run.err;
}

TEST_F(GpuSums, OfGpusThatDoNotReachEachOtherEndTraining) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 20, .snapshot = 0, .test_interval = 1000000});
  const Finished run = Train(folder, {"CREMA_EMULATED_NCCL=apart", "CREMA_GPU_STALL_MS=500"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("the GPUs have not been connected in 500 ms")) << run.err;
}

// Its rank says why, while the other one waits for its sums.
TEST_F(GpuSums, EndWhereAGpuFails) {
  for (const char* fault : {"0:10", "0:120", "0:160", "1:10", "1:40", "1:120", "1:300"}) {
    SCOPED_TRACE(fault);
    const ScratchFolder folder;
    WriteTinyTraining(folder, {.max_iter = 20, .snapshot = 0, .test_interval = 4});
    const Finished run = Train(folder, {std::string("CREMA_EMULATED_FAULT=") + fault, "CREMA_GPU_STALL_MS=5000"});
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_TRUE(run.Says("failed: cudaErrorIllegalAddress")) << run.err;
    EXPECT_FALSE(run.Says("has not ended")) << run.err;
  }
}

}  // namespace
}  // namespace crema::testing_tools
