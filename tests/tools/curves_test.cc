// The real `train` and `crema curves`: what a training leaves for its curves, through stops, and in every way to train.
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

const std::string kMetrics = "tiny_metrics.jsonl";

class Curves : public ::testing::Test {
 protected:
  Finished Train(const std::vector<std::string>& more = {}, Setting setting = {}) const {
    std::vector<std::string> words = {"train", "--solver=solver.prototxt"};
    words.insert(words.end(), more.begin(), more.end());
    setting.folder = folder_.path();
    return RunProgram(words, setting);
  }
  Finished Draw(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {"crema", "curves"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return RunProgram(words, {.folder = folder_.path()});
  }
  // All numbers but the times, as CSV.
  std::string Numbers() const {
    const Finished drawn = Draw({kMetrics, "--output=numbers.csv"});
    EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
    return Replaced(ReadText(folder_ / "numbers.csv"), R"(\n(tiny,\d+),[\d.]+,)", "\n$1,");
  }

  const ScratchFolder folder_;
};

TEST_F(Curves, OfATrainingAreThereWithoutAsking) {
  WriteTinyTraining(folder_, {.max_iter = 60});
  const Finished run = Train();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Finished text = Draw({kMetrics});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(Matches(text.out, R"(^tiny \(Tiny\): iteration 60 of 60, ended\n)")) << text.out;
  for (const char* line : {R"(\ntrain loss +60 )", R"(\ntest loss +2 )", R"(\ntest accuracy +2 )",
                           R"(\nlearning rate +6 )", R"(\nloss( \(logarithmic\))?:\n)"}) {
    EXPECT_TRUE(Matches(text.out, line)) << line << "\n" << text.out;
  }
  // The log tells the same.
  folder_.Write("tiny.log", run.err);
  ASSERT_EQ(Draw({"tiny.log", kMetrics, "--output=both.svg"}).exit_code, 0);
  const std::string svg = ReadText(folder_ / "both.svg");
  EXPECT_NE(svg.find("2 runs"), std::string::npos);
  EXPECT_NE(svg.find("tiny.log: test"), std::string::npos);
  EXPECT_NE(svg.find(kMetrics + ": test"), std::string::npos);
}

TEST_F(Curves, OfATrainingThatWasStoppedAndResumedAreThoseOfOneThatWasNot) {
  WriteTinyTraining(folder_, {.max_iter = 60});
  ASSERT_EQ(Train().exit_code, 0);
  const std::string whole = Numbers();
  EXPECT_GT(Count(whole, "\n"), 60) << whole;
  fs::remove(folder_ / kMetrics);
  fs::remove(folder_ / "tiny_iter_60.solverstate");
  // As if it had been killed behind iteration 50: what was recorded since its snapshot is trained again.
  const std::string solver = ReadText(folder_ / "solver.prototxt");
  folder_.Write("solver.prototxt", Replaced(solver, "max_iter: 60", "max_iter: 50"));
  ASSERT_EQ(Train().exit_code, 0);
  fs::remove(folder_ / "tiny_iter_50.solverstate");
  folder_.Write("solver.prototxt", solver);
  const Finished resumed = Train({"--snapshot=auto"});
  ASSERT_TRUE(resumed.Says("Restored iteration 40")) << resumed.err;
  EXPECT_EQ(Numbers(), whole);
}

TEST_F(Curves, GoWhereTheFlagsSay) {
  WriteTinyTraining(folder_, {.max_iter = 20});
  const Finished none = Train({"--metrics=none"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_FALSE(fs::exists(folder_ / kMetrics));
  const Finished named = Train({"--metrics=my.jsonl", "--curves=my.html"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_FALSE(fs::exists(folder_ / kMetrics));
  EXPECT_TRUE(fs::exists(folder_ / "my.jsonl"));
  EXPECT_NE(ReadText(folder_ / "my.html").find("iteration 20 of 20"), std::string::npos);
}

TEST_F(Curves, GoToAFolderForTensorBoard) {
  WriteTinyTraining(folder_, {.max_iter = 40});
  const Finished run = Train({"--curves=board/"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Finished drawn = Draw({kMetrics, "--output=again/"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  for (const char* net : {"train", "test"}) {
    const auto size = [&](const std::string& folder) {
      return fs::file_size(fs::directory_iterator(folder_ / (folder + net))->path());
    };
    EXPECT_GT(size("board/"), 100u);
    // What was written while training went on, and from its record.
    EXPECT_EQ(size("board/"), size("again/"));
  }
}

TEST_F(Curves, MistakesAreSaidBeforeTraining) {
  WriteTinyTraining(folder_, {.max_iter = 20});
  const auto refuses = [&](const Finished& run, int code, const std::string& words) {
    EXPECT_EQ(run.exit_code, code) << run.err;
    EXPECT_TRUE(run.Says(words)) << words << "\n" << run.err;
    EXPECT_FALSE(run.Says("Solving Tiny"));
  };
  refuses(Train({"--metrics=none", "--curves=a.svg"}), 2, "--metrics=none records nothing");
  refuses(Train({"--curves=a.png"}), 2, "a.png: error: curves are drawn into files that end with .svg or .html");
  refuses(Train({"--curves=none/a.svg"}), 1,
          "none/a.svg: cannot be written: No such file or directory; does its folder exist?");
  refuses(Train({"--metrics=none/a.jsonl"}), 1,
          "none/a.jsonl: cannot be written: No such file or directory; does its folder exist?");
  refuses(Draw({}), 2, "expected one FILE or several");
  refuses(Draw({"solver.prototxt"}), 2, "no curves in it");
  refuses(Draw({"none.jsonl"}), 2, "there is no such file");
  refuses(Draw({"--x=epochs", "solver.prototxt"}), 2, "--x=epochs: iterations or time was expected");
}

TEST_F(Curves, AFullDiskDoesNotEndATraining) {
  WriteTinyTraining(folder_, {.max_iter = 300, .snapshot = 0, .more = "snapshot_after_train: false"});
  const Finished run = Train({"--metrics=full.jsonl"}, {.file_size_limit = 16000});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Count(run.err, "full.jsonl: cannot be written: File too large"), 1) << run.err;
  EXPECT_TRUE(run.Says("Optimization Done."));
}

TEST_F(Curves, AreThereInEveryWayToTrain) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--workers=2"}, {"--workers=2", "--worker_threads"}}) {
    const ScratchFolder folder;
    WriteTinyTraining(folder, {.max_iter = 60, .more = "distributed { local_steps: 5 }"});
    std::vector<std::string> words = {"train", "--solver=solver.prototxt", "--threads=1"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Finished run = RunProgram(words, {.folder = folder.path()});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Finished text = RunProgram({"crema", "curves", kMetrics}, {.folder = folder.path()});
    EXPECT_TRUE(Matches(text.out, R"(\ntrain loss +60 )")) << text.out << text.err;
    EXPECT_TRUE(Matches(text.out, R"(\ntest accuracy +\d)")) << text.out << text.err;
  }
}

}  // namespace
}  // namespace crema::testing_tools
