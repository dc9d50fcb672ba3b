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

}  // namespace
}  // namespace crema::testing_tools
