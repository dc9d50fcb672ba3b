// Which files of a snapshot_prefix are taken for what.
#include "solver/snapshots/prefix_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "crema/error.h"
#include "errors.h"
#include "files.h"
#include "solver/training_test.h"
#include "solver/writable_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

TEST(PrefixFiles, StatesAreThoseOfThePrefix) {
  const WritableFolder folder;
  for (const char* name :
       {"run_iter_9.solverstate", "run_iter_10.solverstate", "run_iter_10.solverstate.h5", "run_iter_010.solverstate",
        "run_iter_-3.solverstate", "run_iter_.solverstate", "run_iter_7.caffemodel", "run_iter_8.solverstate.tmp.12",
        "run_iter_99999999999.solverstate", "other_iter_50.solverstate", "run2_iter_50.solverstate"}) {
    folder.Write(name, "");
  }
  std::string found;
  for (const StateFile& state : FindStates(folder / "run", SolverParameter::HDF5)) {
    found += fs::path(state.path).filename().string() + " ";
  }
  EXPECT_EQ(found, "run_iter_10.solverstate.h5 run_iter_10.solverstate run_iter_9.solverstate ");
  EXPECT_TRUE(FindStates(folder / "absent/run", SolverParameter::HDF5).empty());
}

TEST(PrefixFiles, OneProcessHoldsAPrefix) {
  const WritableFolder folder;
  const std::string prefix = folder / "run";
  {
    const PrefixLock lock(prefix), other(folder / "run2");
    const std::string message = ThrownBy<EnvironmentError>([&] { const PrefixLock again(prefix); });
    EXPECT_NE(message.find("another training (process " + std::to_string(getpid()) + ") writes snapshots to"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("snapshot_prefix of its own"), std::string::npos) << message;
  }
  EXPECT_FALSE(fs::exists(prefix + ".lock"));
  folder.Write("run.lock", "123");  // of a process that was killed
  const PrefixLock lock(prefix);
}

TEST(PrefixFiles, TheLockWritesIntoNoFileOfOthers) {
  const WritableFolder folder;
  const std::string prefix = folder / "run", name = prefix + ".lock", other = folder / "notes";
  const auto refused = [&] {
    EXPECT_NE(ThrownBy<UserError>([&] { const PrefixLock lock(prefix); }).find("run.lock: error: is a folder, a link"),
              std::string::npos);
    fs::remove(name);
  };
  folder.Write("notes", "mine");
  fs::create_symlink(other, name);
  refused();
  fs::create_hard_link(other, name);
  refused();
  fs::create_directory(name);
  refused();
  EXPECT_EQ(fs::file_size(other), 4u);
}

TEST(PrefixFiles, WhatAKilledRunLeftIsRemoved) {
  const WritableFolder folder;
  const std::vector<std::string> unfinished = {"run_iter_20.caffemodel.tmp.123", "run_iter_20.solverstate.tmp.123",
                                               "run_best.caffemodel.tmp.9", "run_ema.caffemodel.h5.tmp.9",
                                               "run_cluster.journal.tmp.3141592653"};
  const std::vector<std::string> others = {"run_iter_10.caffemodel",
                                           "run_iter_10.solverstate",
                                           "run2_iter_1.caffemodel.tmp.1",
                                           "run_iter_20.caffemodel.tmp.old",
                                           "run_metrics.jsonl",
                                           "run_notes.tmp.5",
                                           "run_cluster.journal"};
  for (const auto* names : {&unfinished, &others}) {
    for (const std::string& name : *names) folder.Write(name, "x");
  }
  EXPECT_EQ(PrefixLock(folder / "run").RemoveUnfinished(), 5);
  for (const std::string& name : unfinished) EXPECT_FALSE(fs::exists(folder / name)) << name;
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder / name)) << name;
}

TEST_F(SmallTraining, AutoDoesNotGuessWhichOfTwoRunsIsMeant) {
  Train("snapshot: 2", 4);
  const std::string older = folder_ / "snap_iter_4.solverstate", newer = folder_ / "snap_iter_2.solverstate";
  Make(SolverText("", 4), {.snapshot = "auto"});
  ASSERT_EQ(recorder_.restored.size(), 1u);
  EXPECT_EQ(recorder_.restored[0].iteration, 4);
  fs::last_write_time(newer, fs::last_write_time(older) + 5s);
  const std::string message = ThrownBy<UserError>([&] { Make(SolverText("", 4), {.snapshot = "auto"}); });
  EXPECT_NE(message.find(older + ": error: has more iterations than " + newer), std::string::npos) << message;
  EXPECT_NE(message.find("--snapshot=FILE"), std::string::npos) << message;
  // What is damaged is of no run.
  const std::string whole = ReadFile(older);
  folder_.Write("snap_iter_4.solverstate", "damaged");
  fs::last_write_time(older, fs::last_write_time(newer) - 5s);
  Make(SolverText("", 4), {.snapshot = "auto"});
  EXPECT_EQ(recorder_.restored[0].iteration, 2);
  folder_.Write("snap_iter_4.solverstate", whole);
  Make(SolverText("", 4), {.snapshot = newer});
  EXPECT_EQ(recorder_.restored[0].iteration, 2);
  fs::last_write_time(older, fs::last_write_time(newer) + 5s);
  Make(SolverText("", 4), {.snapshot = "auto"});
  EXPECT_EQ(recorder_.restored[0].iteration, 4);
}

TEST_F(SmallTraining, AutoSaysThatATimeLiesInTheFuture) {
  Train("snapshot: 2", 4);
  const std::string highest = folder_ / "snap_iter_4.solverstate", other = folder_ / "snap_iter_2.solverstate";
  const auto touch = [](const std::string& path) { fs::last_write_time(path, fs::file_time_type::clock::now()); };
  const auto message = [&] { return ThrownBy<UserError>([&] { Make(SolverText("", 4), {.snapshot = "auto"}); }); };
  fs::last_write_time(highest, fs::file_time_type::clock::now() - 5s);
  touch(other);
  EXPECT_EQ(message().find("future"), std::string::npos) << message();
  EXPECT_NE(message().find("touch " + highest), std::string::npos) << message();

  fs::last_write_time(other, fs::file_time_type::clock::now() + 48h);
  touch(highest);
  EXPECT_NE(message().find(other + ", whose time lies in the future"), std::string::npos) << message();
  EXPECT_NE(message().find("touch " + other + " and then " + highest), std::string::npos) << message();
  touch(other);
  touch(highest);
  EXPECT_EQ(message(), "");
  EXPECT_EQ(recorder_.restored[0].iteration, 4);
}

}  // namespace
}  // namespace crema
