// The solver's `snapshot_keep`.
#include "solver/snapshots/kept_snapshots.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <stdexcept>

#include "base/hdf5.h"
#include "files.h"
#include "solver/training_test.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

// Does something as soon as a snapshot is whole, before older ones are removed.
class AtSnapshot : public Observer {
 public:
  AtSnapshot(int iteration, std::function<void()> action) : iteration_(iteration), action_(std::move(action)) {}
  void OnSnapshot(const SnapshotWritten& written) override {
    if (written.iteration == iteration_) action_();
  }

 private:
  const int iteration_;
  const std::function<void()> action_;
};

class Kept : public SmallTraining {
 protected:
  // Iterations of which there are both files; nothing else of the prefix may be there but the best model.
  std::set<int> Pairs(const std::string& prefix = "snap") {
    std::set<int> models, states;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string(), start = prefix + "_iter_";
      if (!name.starts_with(start)) continue;
      (entry.path().extension() == ".caffemodel" ? models : states).insert(std::stoi(name.substr(start.size())));
    }
    EXPECT_EQ(models, states);
    return states;
  }

  // As Train, told to another observer, too.
  void TrainWith(Observer* observer, const std::string& more, int max_iter, SolverOptions options = {}) {
    recorder_ = Recorder();
    options.path = folder_ / "solver.prototxt";
    options.observers = {&recorder_, observer};
    Solver(ParseSolver(SolverText(more, max_iter), "solver.prototxt"), std::move(options)).Train();
  }
  // As a run that is killed when the snapshot of this iteration is whole.
  void KilledAt(int iteration, const std::string& more, SolverOptions options = {}) {
    AtSnapshot kill(iteration, [] { throw std::runtime_error("killed"); });
    EXPECT_THROW(TrainWith(&kill, more, 100, std::move(options)), std::runtime_error);
  }

  std::string State(int iteration) { return folder_ / ("snap_iter_" + std::to_string(iteration) + ".solverstate"); }
};

TEST_F(Kept, AreTheLastOnes) {
  Train("snapshot: 2", 9);
  EXPECT_EQ(Pairs(), (std::set<int>{2, 4, 6, 8, 9})) << "without the setting all are kept";
  Train("snapshot: 2 snapshot_keep: 2 snapshot_prefix: \"" + (folder_ / "two") + "\"", 9);
  EXPECT_EQ(Pairs("two"), (std::set<int>{8, 9}));
  EXPECT_EQ(recorder_.snapshots.size(), 5u);
  Train("snapshot: 2 snapshot_keep: 9 snapshot_prefix: \"" + (folder_ / "nine") + "\"", 9);
  EXPECT_EQ(Pairs("nine"), (std::set<int>{2, 4, 6, 8, 9}));
  EXPECT_EQ(Pairs().size(), 5u) << "those of another prefix are nobody's business";
}

TEST_F(Kept, CountFromBeforeTheRunWasResumed) {
  Train("snapshot: 2 snapshot_keep: 3", 6);
  EXPECT_EQ(Pairs(), (std::set<int>{2, 4, 6}));
  Train("snapshot: 2 snapshot_keep: 3", 8, {.snapshot = "auto"});
  EXPECT_EQ(Pairs(), (std::set<int>{4, 6, 8}));
  Train("snapshot: 2 snapshot_keep: 1", 10, {.snapshot = State(8)});
  EXPECT_EQ(Pairs(), (std::set<int>{10}));
  EXPECT_EQ(recorder_.notices, "");
}

TEST_F(Kept, AreAsWithoutABreak) {
  const std::string settings = "snapshot: 2 snapshot_keep: 2";
  Train(settings, 12);
  const std::string straight = ReadFile(State(12));
  for (const int iteration : Pairs()) {
    fs::remove(State(iteration));
    fs::remove(ModelPath(folder_ / "snap", iteration));
  }
  // Killed when three are there.
  KilledAt(6, settings);
  EXPECT_EQ(Pairs(), (std::set<int>{2, 4, 6}));
  KilledAt(8, settings, {.snapshot = "auto"});
  EXPECT_EQ(recorder_.restored.at(0).iteration, 6);
  EXPECT_EQ(Pairs(), (std::set<int>{4, 6, 8})) << "what the first run was to remove stays";
  Train(settings, 12, {.snapshot = "auto"});
  EXPECT_EQ(Pairs(), (std::set<int>{10, 12}));
  EXPECT_TRUE(ReadFile(State(12)) == straight) << "states differ";
}

TEST_F(Kept, GoWhereTheRunWasKilledBetweenTheirFiles) {
  const std::string settings = "snapshot: 2 snapshot_keep: 2";
  KilledAt(6, settings);
  fs::remove(folder_ / "snap_iter_2.caffemodel");  // as far as it came
  Train(settings, 6, {.snapshot = "auto"});
  EXPECT_EQ(recorder_.restored.at(0).iteration, 6);
  EXPECT_EQ(Pairs(), (std::set<int>{4, 6}));
}

TEST_F(Kept, AreNotThoseOfAnotherName) {
  const std::string other = "snapshot: 2 snapshot_keep: 2 snapshot_prefix: \"" + (folder_ / "other") + "\"";
  Train(other, 4);
  Train("snapshot: 2 snapshot_keep: 1", 8, {.snapshot = folder_ / "other_iter_4.solverstate"});
  EXPECT_EQ(Pairs("other"), (std::set<int>{2, 4}));
  EXPECT_EQ(Pairs(), (std::set<int>{8}));
}

TEST_F(Kept, AreNotThoseThatAnotherRunWroteInTheirPlace) {
  Train("snapshot: 2 snapshot_keep: 2", 4);
  Train("base_lr: 0.01", 2);
  const std::string theirs = ReadFile(State(2));
  Train("snapshot: 2 snapshot_keep: 1", 6, {.snapshot = State(4)});
  EXPECT_EQ(Pairs(), (std::set<int>{2, 6}));
  EXPECT_TRUE(ReadFile(State(2)) == theirs);
  EXPECT_EQ(recorder_.notices, "");
}

TEST_F(Kept, AreNotThoseFromBeforeTheSettingButTheOneResumedFrom) {
  Train("snapshot: 2", 6);
  Train("snapshot: 2 snapshot_keep: 1", 8, {.snapshot = "auto"});
  EXPECT_EQ(Pairs(), (std::set<int>{2, 4, 8}));
}

TEST_F(Kept, MayBeInBothFormats) {
  try {
    CreateHdf5(folder_ / "probe");
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  Train("snapshot: 2 snapshot_keep: 2", 4);
  Train("snapshot: 2 snapshot_keep: 2 snapshot_format: HDF5", 8, {.snapshot = "auto"});
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("snap_iter_")) left.insert(name);
  }
  EXPECT_EQ(left, (std::set<std::string>{"snap_iter_6.caffemodel.h5", "snap_iter_6.solverstate.h5",
                                         "snap_iter_8.caffemodel.h5", "snap_iter_8.solverstate.h5"}));
  EXPECT_EQ(recorder_.notices, "");
}

TEST_F(Kept, LeaveTheBestParameters) {
  Train("snapshot: 2 snapshot_keep: 1 test_iter: 2 test_interval: 2 best { }", 8);
  EXPECT_EQ(Pairs(), (std::set<int>{8}));
  EXPECT_TRUE(fs::exists(folder_ / "snap_best.caffemodel"));
}

TEST_F(Kept, StayWhereTheNewOneCannotBeWritten) {
  fs::create_directory(folder_ / "snap_iter_6.caffemodel");
  const TrainingResult result = Train("snapshot: 2 snapshot_keep: 1", 7);
  fs::remove(folder_ / "snap_iter_6.caffemodel");
  EXPECT_EQ(result.failed_snapshots, 1);
  EXPECT_EQ(Pairs(), (std::set<int>{7}));
  fs::create_directory(folder_ / "snap_iter_9.caffemodel");
  Train("snapshot: 2 snapshot_keep: 1", 9, {.snapshot = State(7)});
  fs::remove(folder_ / "snap_iter_9.caffemodel");
  EXPECT_EQ(Pairs(), (std::set<int>{8}));
}

TEST_F(Kept, ThatCannotBeRemovedAreTold) {
  AtSnapshot spoil(4, [this] {
    fs::remove(folder_ / "snap_iter_2.caffemodel");
    fs::create_directories(folder_ / "snap_iter_2.caffemodel/inside");
  });
  TrainWith(&spoil, "snapshot: 2 snapshot_keep: 1", 6);
  EXPECT_NE(recorder_.notices.find("an old snapshot stays, although snapshot_keep is 1, since it cannot be removed: " +
                                   (folder_ / "snap_iter_2.caffemodel: Directory not empty")),
            std::string::npos)
      << recorder_.notices;
  EXPECT_TRUE(fs::exists(State(2))) << "it goes after its model";
  fs::remove_all(folder_ / "snap_iter_2.caffemodel");
  fs::remove(State(2));
  EXPECT_EQ(Pairs(), (std::set<int>{6}));
}

}  // namespace
}  // namespace crema
