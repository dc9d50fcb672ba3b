// What `train` makes of the files that lie where it is to write snapshots, and of data that is not there or damaged.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tools/patterns.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

Finished Train(const ScratchFolder& folder, const std::string& flag = "--solver=solver.prototxt") {
  return RunProgram({"train", "--solver=solver.prototxt", flag}, {.folder = folder.path()});
}

TEST(SnapshotFiles, TwoTrainingsDoNotWriteThem) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 20000});
  Running running({"train", "--solver=solver.prototxt"}, {.folder = folder.path()});
  ASSERT_TRUE(running.WaitFor("Snapshotting solver state", 2)) << running.Err();
  const Finished second = Train(folder, "--snapshot=auto");
  EXPECT_EQ(second.exit_code, 1) << second.err;
  EXPECT_TRUE(second.Says("another training (process " + std::to_string(running.pid()) + ") writes snapshots to"))
      << second.err;
  running.Signal(SIGKILL);
  running.Wait();
  std::ofstream(folder / "tiny_iter_77.caffemodel.tmp.1") << "half of one";
  std::string solver = ReadText(folder / "solver.prototxt");
  const std::string iterations = "max_iter: 20000";
  ASSERT_NE(solver.find(iterations), std::string::npos) << solver;
  std::ofstream(folder / "solver.prototxt")
      << solver.replace(solver.find(iterations), iterations.size(), "max_iter: 20");
  const Finished third = Train(folder);
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_TRUE(third.Says("unfinished file(s) of a killed run")) << third.err;
  EXPECT_TRUE(third.Says("snapshots of an earlier run are there, up to tiny_iter_")) << third.err;
  EXPECT_FALSE(fs::exists(folder / "tiny_iter_77.caffemodel.tmp.1"));
  EXPECT_FALSE(fs::exists(folder / "tiny.lock"));
}

TEST(SnapshotFiles, AFlagWithoutAValueIsNoFreshStart) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const Finished run = Train(folder, "--snapshot=");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(run.Says("--snapshot needs a value")) << run.err;
}

TEST(MissingData, IsNamedBeforeItsConsequences) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  // Of a net whose tests find their data; cropped, so that the shape without channels is known.
  std::string net = ReadText(folder / "net.prototxt");
  const std::string source = "source: \"db\"";
  ASSERT_NE(net.find(source), std::string::npos) << net;
  net.replace(net.find(source), source.size(), "source: \"bd\"");
  std::ofstream(folder / "net.prototxt") << net;
  const Finished run = Train(folder);
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(net\.prototxt:\d+:\d+: error: layer "data")")) << run.err;
  EXPECT_TRUE(run.Says("\"bd\" does not exist; correct the path, or make it: the folder of an LMDB")) << run.err;
}

TEST(DamagedData, EndsProgramsByName) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const fs::path file = folder / "db/data.mdb";
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  {
    // All but the first pages, which say where others are, and the last.
    std::fstream database(file, std::ios::in | std::ios::out | std::ios::binary);
    database.seekp(4 * 4096);
    const std::string nothing(static_cast<size_t>(size - 8 * 4096), '\0');
    database.write(nothing.data(), static_cast<std::streamsize>(nothing.size()));
  }
  for (const auto& command :
       {std::vector<std::string>{"db_tool", "verify", "db"}, {"train", "--solver=solver.prototxt"}}) {
    const Finished run = RunProgram(command, {.folder = folder.path()});
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(run.Says("is damaged")) << run.err;
    EXPECT_TRUE(run.Says("db\"")) << run.err;
  }
  fs::resize_file(file, 0);
  const Finished empty = RunProgram({"db_tool", "info", "db"}, {.folder = folder.path()});
  EXPECT_EQ(empty.exit_code, 2) << empty.err;
  EXPECT_TRUE(empty.Says("database \"db\" holds nothing: data.mdb has 0 bytes")) << empty.err;
}

}  // namespace
}  // namespace crema::testing_tools
