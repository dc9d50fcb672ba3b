// Mistakes in what the real `train` with several workers goes on with.
#include <gtest/gtest.h>

#include <string>

#include "tools/cluster_training.h"

namespace crema::testing_tools {
namespace {

TEST(ClusterResumeMistakes, WhatDivergedTakesNoSnapshotsPlace) {
  const ClusterFolder folder("local_workers: 2 mode: GRADIENT", {.max_iter = 20, .more = "snapshot_keep: 1\n"});
  ASSERT_EQ(folder.Run().exit_code, 0);
  EXPECT_EQ(folder.NewestState(), 20);
  std::string solver = ReadText(folder / "solver.prototxt");
  solver.replace(solver.find("base_lr: 0.02"), 13, "base_lr: 1e25");
  solver.replace(solver.find("max_iter: 20"), 12, "max_iter: 40");
  folder.Write("solver.prototxt", solver);
  const Finished run = folder.Run({"--snapshot=auto"});
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(folder.NewestState(), 20) << run.err;
}

TEST(ClusterResumeMistakes, AnOuterMomentumOfOtherParameters) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5 outer_momentum: 0.5", {.max_iter = 20});
  ASSERT_EQ(folder.Run().exit_code, 0);
  std::string net = ReadText(folder / "net.prototxt");
  const std::string layer = "name: \"conv1\"";
  net.insert(net.find(layer) + layer.size(), " param { lr_mult: 0 } param { lr_mult: 0 }");
  folder.Write("net.prototxt", net);
  std::string solver = ReadText(folder / "solver.prototxt");
  solver.replace(solver.find("max_iter: 20"), 12, "max_iter: 40");
  folder.Write("solver.prototxt", solver);
  const Finished run = folder.Run({"--snapshot=auto"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("the snapshot's outer momentum has ") && run.Says("with lr_mult 0 where it was")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
