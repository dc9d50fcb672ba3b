// Programs as the system's own tools see them.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

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

}  // namespace
}  // namespace crema::testing_tools
