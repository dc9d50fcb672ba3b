// Programs as the system's own tools see them.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// By which ps and top show it, and pkill and killall find it.
TEST(Process, HasTheProgramsName) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1000000});
  // Where these are set a program does not start itself again.
  Running running({"/usr/bin/env", "-u", "GOMP_SPINCOUNT", "-u", "OMP_WAIT_POLICY",
                   std::string(CREMA_BIN_DIR) + "/train", "--solver=solver.prototxt"},
                  {.folder = folder.path()});
  ASSERT_TRUE(running.WaitFor("Iteration 20")) << running.Err();
  EXPECT_EQ(ReadText("/proc/" + std::to_string(running.pid()) + "/comm"), "train\n");
  running.Signal(SIGKILL);
  EXPECT_EQ(running.Wait().signal, SIGKILL);
}

// As `tail -f` shows it, and as it is found when the program was killed.
TEST(Process, HasWrittenToItsLogFileWhatItSaid) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1000000});
  Running running({"train", "--solver=solver.prototxt", "--log_dir=logs"}, {.folder = folder.path()});
  ASSERT_TRUE(running.WaitFor("Iteration 40")) << running.Err();
  running.Signal(SIGKILL);
  EXPECT_EQ(running.Wait().signal, SIGKILL);
  EXPECT_NE(ReadText(folder / "logs/train.INFO").find("] Iteration 20"), std::string::npos);
}

// OpenMP may make fewer threads than oneDNN divides its work for.
TEST(Process, ThreadsThatAreHeldBackChangeNoNumbers) {
  const ScratchFolder folder;
  folder.Write("net.prototxt", R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 64 dim: 20 dim: 12 dim: 12 } } }
layer {
  name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 500 weight_filler { type: "xavier" } }
}
layer { name: "sum" type: "Reduction" bottom: "ip" top: "sum" reduction_param { operation: SUMSQ } loss_weight: 1 }
)");
  const auto probe = [&](const std::vector<std::string>& environment) {
    std::vector<std::string> words = {"/usr/bin/env", "OMP_NUM_THREADS=2"};
    words.insert(words.end(), environment.begin(), environment.end());
    for (const std::string& word : {(fs::path(CREMA_BIN_DIR) / "crema").string(), std::string("probe"),
                                    std::string("--model=net.prototxt"), std::string("--backward")}) {
      words.push_back(word);
    }
    const Finished run = RunProgram(words, {.folder = folder.path()});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run;
  };
  const std::string two = probe({}).out, one = probe({"OMP_NUM_THREADS=1"}).out;
  EXPECT_EQ(probe({"OMP_DYNAMIC=true"}).out, two);
  const Finished limited = probe({"OMP_THREAD_LIMIT=1"});
  EXPECT_EQ(limited.out, one);
  EXPECT_TRUE(limited.Says("1 thread computes, not 2: no more are possible with OMP_THREAD_LIMIT")) << limited.err;
}

TEST(Process, WithoutStandardFilesItsMessagesGoNowhere) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 60});
  const std::string train = (fs::path(CREMA_BIN_DIR) / "train").string();
  const Finished run = RunProgram({"/bin/sh", "-c", "'" + train + "' --solver=solver.prototxt 0<&- 1>&- 2>&-"},
                                  {.folder = folder.path()});
  EXPECT_EQ(run.exit_code, 0);
  std::istringstream lines(ReadText(folder / "tiny_metrics.jsonl"));
  int records = 0;
  for (std::string line; std::getline(lines, line); ++records) EXPECT_EQ(line.front(), '{') << line;
  EXPECT_GT(records, 2);
}

}  // namespace
}  // namespace crema::testing_tools
