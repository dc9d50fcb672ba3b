// Nothing that stops the real `train` changes its result: kills, signals, full disks.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

TEST(Training, KilledAtRandomMomentsItEndsWithTheSameModel) {
  const ScratchFolder whole, killed;
  // Long enough that on a busy machine, too, it is seen before its end.
  const TinyTraining options{.max_iter = 1500, .snapshot = 100};
  WriteTinyTraining(whole, options);
  WriteTinyTraining(killed, options);
  const Finished run = RunProgram(kTrain, In(whole));
  ASSERT_EQ(run.exit_code, 0) << run.err;

  std::vector<std::string> again = kTrain;
  again.push_back("--snapshot=auto");
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  // By what has been logged, as the time that takes depends on the machine; then a moment more.
  std::uniform_int_distribution<int> lines(0, 150), milliseconds(0, 15);
  int kills = 0, resumed = 0;
  for (int i = 0; i < 8; ++i) {
    Running running(again, In(killed));
    if (!running.WaitFor("\n", lines(random))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds(random)));
    if (running.ended()) break;
    running.Signal(SIGKILL);
    const Finished finished = running.Wait();
    if (finished.signal != SIGKILL) {
      // It had just come to its end.
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
      break;
    }
    ++kills;
    resumed += finished.Says("Resuming from");
  }
  EXPECT_GE(kills, 3);
  // One more where the moment is known: in the middle, after a snapshot.
  if (NewestState(killed) < 1400) {
    Running running(again, In(killed));
    running.WaitFor("Snapshotting solver state");
    running.Signal(SIGKILL);
    running.Wait();
  }
  const Finished last = RunProgram(again, In(killed));
  ASSERT_EQ(last.exit_code, 0) << "seed " << seed << "\n" << last.err;
  EXPECT_TRUE(last.Says("Resuming from")) << last.err;
  EXPECT_TRUE(last.Says("Optimization Done."));
  EXPECT_TRUE(SameModel(killed, whole, 1500))
      << "seed " << seed << ", " << kills << " kills, " << resumed << " resumed";
  std::cout << kills << " kills at random moments, " << resumed << " of them in a resumed run\n";
}

// As Ctrl-C ends the `tee` that reads the log, too.
TEST(Training, GoesOnWhereNobodyReadsItsLog) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 200, .snapshot = 0});
  const std::string train = (fs::path(CREMA_BIN_DIR) / "train").string();
  const Finished run = RunProgram(
      {"/bin/sh", "-c", "('" + train + "' --solver=solver.prototxt 2>&1; echo $? > code) | head -n 1"}, In(folder));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(ReadText(folder / "code"), "0\n");
  EXPECT_TRUE(fs::exists(folder / "tiny_iter_200.caffemodel"));
}

TEST(Training, DataLostUnderItEndsItWithASnapshot) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1000000, .snapshot = 0});
  Running running(kTrain, In(folder));
  ASSERT_TRUE(running.WaitFor("Iteration 50 "));
  fs::resize_file(folder / "db/data.mdb", 8192);
  const Finished run = running.Wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("\"db\" lost pages of data.mdb while it was read")) << run.err;
  EXPECT_GE(NewestState(folder), 50) << run.err;
}

// As by `git clean`, or where a folder was mounted anew.
TEST(Training, WritesIntoItsFolderThatWasMadeAgain) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1000000, .snapshot = 0});
  Running running(kTrain, In(folder));
  ASSERT_TRUE(running.WaitFor("Iteration 50 "));
  fs::remove_all(folder.path());
  running.Signal(SIGINT);
  ASSERT_TRUE(running.WaitFor("Make room, or its folder where that is gone"));
  fs::create_directory(folder.path());
  const Finished run = running.Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GE(NewestState(folder), 50) << run.err;
}

TEST(Training, CtrlCWritesASnapshotThatGoesOnExactly) {
  const ScratchFolder whole, stopped;
  const TinyTraining options{.max_iter = 400, .snapshot = 0};
  WriteTinyTraining(whole, options);
  WriteTinyTraining(stopped, options);
  ASSERT_EQ(RunProgram(kTrain, In(whole)).exit_code, 0);

  Running running(kTrain, In(stopped));
  ASSERT_TRUE(running.WaitFor("Iteration 40, lr")) << running.Err();
  running.Signal(SIGINT);
  running.Signal(SIGINT);  // someone impatient
  const Finished first = running.Wait();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(first.Says("Optimization stopped early.")) << first.err;
  EXPECT_FALSE(first.Says("Optimization Done.")) << first.err;
  const int at = NewestState(stopped);
  ASSERT_GT(at, 0) << first.err;
  ASSERT_LT(at, 400);

  std::vector<std::string> resume = kTrain;
  resume.push_back("--snapshot=tiny_iter_" + std::to_string(at) + ".solverstate");
  const Finished second = RunProgram(resume, In(stopped));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(SameModel(stopped, whole, 400)) << "stopped at " << at;
}

// A list of images that nobody ever writes.
class HangingTraining : public ::testing::Test {
 protected:
  // Until it ends.
  Finished SignalAgainAndAgain(int signal) const {
    Running running(kTrain, In(folder_));
    EXPECT_TRUE(running.WaitForOpening(list_.path())) << running.Err();
    while (!running.ended()) {
      running.Signal(signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return running.Wait();
  }

 private:
  void SetUp() override {
    folder_.Write("net.prototxt", R"(layer { name: "data" type: "ImageData" top: "data" top: "label"
  image_data_param { source: ")" + list_.path() +
                                      R"(" batch_size: 4 new_height: 2 new_width: 2 } }
)");
    folder_.Write("solver.prototxt",
                  "net: \"net.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 10 snapshot_prefix: \"tiny\"\n");
  }

  const ScratchFolder folder_;
  const EndlessFile list_;
};

TEST_F(HangingTraining, EndsByCtrlCThreeTimes) {
  const Finished run = SignalAgainAndAgain(SIGINT);
  EXPECT_EQ(run.signal, SIGINT) << run.err;
  EXPECT_TRUE(run.Says("Ctrl-C once more ends all at once, without a snapshot")) << run.err;
}

TEST_F(HangingTraining, EndsBySigtermOnceMore) {
  const Finished run = SignalAgainAndAgain(SIGTERM);
  EXPECT_EQ(run.signal, SIGTERM) << run.err;
  EXPECT_TRUE(run.Says("SIGTERM once more, and the step under way has not come to its end")) << run.err;
}

TEST(Training, SignalsDoWhatTheFlagsSay) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 2000, .snapshot = 0});
  Running running({"train", "--solver=solver.prototxt", "--sigint_effect=none", "--sighup_effect=snapshot"},
                  In(folder));
  ASSERT_TRUE(running.WaitFor("Iteration 20, lr")) << running.Err();
  running.Signal(SIGINT);
  running.Signal(SIGHUP);
  ASSERT_TRUE(running.WaitFor("Snapshotting solver state")) << running.Err();
  EXPECT_FALSE(running.ended());
  running.Signal(SIGKILL);
  running.Wait();
  const int at = NewestState(folder);
  EXPECT_GT(at, 0);
  EXPECT_LT(at, 2000);
}

TEST(Training, TerminationStopsLikeCtrlC) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 4000, .snapshot = 0});
  Running running(kTrain, In(folder));
  ASSERT_TRUE(running.WaitFor("Iteration 20, lr")) << running.Err();
  running.Signal(SIGTERM);
  const Finished run = running.Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
  EXPECT_GT(NewestState(folder), 0);
}

// The parameter is a line of the solver file.
class SnapshotFormats : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()).find("HDF5") != std::string::npos &&
        !fs::exists(CREMA_BIN_DIR "/../lib/libcrema_hdf5.so")) {
      GTEST_SKIP() << "built without HDF5 (libhdf5-dev)";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Training, SnapshotFormats,
                         ::testing::Values("snapshot_format: BINARYPROTO", "snapshot_format: HDF5"),
                         [](const auto& info) { return info.index == 0 ? "Binary" : "Hdf5"; });

TEST_P(SnapshotFormats, AreGoneOnWithExactly) {
  const std::string end = std::string(GetParam()).find("HDF5") != std::string::npos ? ".h5" : "";
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 60, .more = std::string(GetParam()) + " type: \"Adam\""});
  ASSERT_EQ(RunProgram(kTrain, In(folder)).exit_code, 0);
  const std::string whole = ReadText(folder / ("tiny_iter_60.caffemodel" + end));
  for (const char* file : {"tiny_iter_60.caffemodel", "tiny_iter_60.solverstate"}) fs::remove(folder / (file + end));
  const Finished resumed = RunProgram({"train", "--solver=solver.prototxt", "--snapshot=auto"}, In(folder));
  EXPECT_TRUE(resumed.Says("Restored iteration 40")) << resumed.err;
  EXPECT_FALSE(whole.empty());
  EXPECT_TRUE(whole == ReadText(folder / ("tiny_iter_60.caffemodel" + end)));
}

TEST_P(SnapshotFormats, AFullDiskLosesNothingAndIsReported) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 40, .hidden = 512, .more = GetParam()});
  Setting setting = In(folder);
  setting.file_size_limit = 64 << 10;  // below one model
  Running running(kTrain, setting);
  EXPECT_TRUE(running.WaitFor("the snapshot is tried again every")) << running.Err();
  running.Signal(SIGTERM);
  const Finished run = running.Wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("Snapshot at iteration 20 failed: ")) << run.err;
  EXPECT_TRUE(run.Says("Snapshot at iteration 40 failed: ")) << run.err;
  EXPECT_TRUE(run.Says("Iteration 30, lr")) << "training goes on: " << run.err;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("tiny_iter")) << entry.path();
  }
}

TEST(Training, AnUnusableSnapshotFolderIsFoundAtTheStart) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.more = "snapshot_prefix: \"no_such_folder/tiny\"\n"});
  const Finished run = RunProgram(kTrain, In(folder));
  EXPECT_NE(run.exit_code, 0) << run.err;
  EXPECT_FALSE(run.Says("Iteration 0")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
