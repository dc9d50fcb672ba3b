#include "report/log_observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace crema {
namespace {

// The lines of an observer, each behind a prefix such as glog writes.
class LogLines : public testing::Test {
 protected:
  LogLines()
      : log_([this](bool error, const std::string& line) { (error ? errors_ : lines_).push_back(line); },
             [this](bool, const std::string& line) { notices_.push_back(line); }) {}

  std::string Logged(size_t i) const { return "I1121 12:34:56.789012  4242 solver.cc:218] " + lines_.at(i); }
  // Field `n` from 1, as awk counts.
  static std::string Field(const std::string& line, int n) {
    static const std::regex word(R"(\S+)");
    auto at = std::sregex_iterator(line.begin(), line.end(), word);
    std::advance(at, n - 1);
    return at->str();
  }

  std::vector<std::string> lines_, errors_, notices_;
  LogObserver log_;
};

// The expressions of Caffe's parse_log.py.
const std::regex kIteration(R"(Iteration (\d+))");
const std::regex kTrainOutput(R"(Train net output #(\d+): (\S+) = ([\.\deE+-]+))");
const std::regex kTestOutput(R"(Test net output #(\d+): (\S+) = ([\.\deE+-]+))");
const std::regex kLearningRate(R"(lr = ([-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?))");

std::smatch Search(const std::string& line, const std::regex& pattern) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(line, match, pattern)) << line;
  return match;
}

TEST_F(LogLines, DisplayIsReadByParseLog) {
  Display display;
  display.iteration = 1300;
  display.smoothed_loss = 0.2125f;
  display.learning_rate = 0.00915192f;
  display.seconds = 0.8125;
  display.iterations = 100;
  display.outputs = {{"accuracy", 0.9375f, 0}, {"loss", 3.5e-6f, 1}};
  log_.OnDisplay(display);
  ASSERT_EQ(lines_.size(), 4u);
  EXPECT_EQ(lines_[0], "Iteration 1300 (123.077 iter/s, 0.8125s/100 iters), loss = 0.2125");
  EXPECT_EQ(lines_[1], "    Train net output #0: accuracy = 0.9375");
  EXPECT_EQ(lines_[2], "    Train net output #1: loss = 3.5e-06 (* 1 = 3.5e-06 loss)");
  EXPECT_EQ(lines_[3], "Iteration 1300, lr = 0.00915192");

  for (size_t i : {0, 3}) EXPECT_EQ(Search(Logged(i), kIteration)[1], "1300");
  const std::smatch output = Search(lines_[2], kTrainOutput);
  EXPECT_EQ(output[1], "1");
  EXPECT_EQ(output[2], "loss");
  EXPECT_EQ(std::stof(output[3]), 3.5e-6f);
  EXPECT_EQ(std::stof(Search(lines_[3], kLearningRate)[1]), 0.00915192f);
  // parse_log.sh takes the rate from field 9.
  EXPECT_EQ(Field(Logged(3), 9), "0.00915192");
}

TEST_F(LogLines, SmallLearningRatesKeepTheirExponent) {
  Display display;
  display.learning_rate = 1e-5f;
  log_.OnDisplay(display);
  EXPECT_EQ(std::stof(Search(lines_.back(), kLearningRate)[1]), 1e-5f);
}

// Between Caffe's lines, which scripts take apart by their prefix.
TEST(LogNotices, HaveALineOfTheLogOnceTrainingStarted) {
  std::vector<std::string> notices, logged;
  const auto into = [](std::vector<std::string>* lines) {
    return [lines](bool, const std::string& line) { lines->push_back(line); };
  };
  std::vector<std::string> lines;
  LogObserver log(into(&lines), into(&notices), into(&logged));
  Diagnostic notice;
  notice.severity = Diagnostic::Severity::kWarning;
  notice.message = "of a file";
  log.OnNotice(notice);
  log.OnStart({});
  log.OnNotice(notice);  // told already
  notice.message = "of a slow disk";
  log.OnNotice(notice);
  EXPECT_EQ(notices, std::vector<std::string>{"warning: of a file"});
  EXPECT_EQ(logged, std::vector<std::string>{"warning: of a slow disk"});
}

TEST_F(LogLines, DisplayWithoutTimeDoesNotDivide) {
  Display display;
  display.smoothed_loss = 2.3f;
  log_.OnDisplay(display);
  EXPECT_EQ(lines_[0], "Iteration 0 (0 iter/s, 0s/0 iters), loss = 2.3");
}

TEST_F(LogLines, FinalDisplayIsShort) {
  Display display;
  display.iteration = 60;
  display.smoothed_loss = 0.5f;
  display.final = true;
  log_.OnDisplay(display);
  EXPECT_EQ(lines_, std::vector<std::string>{"Iteration 60, loss = 0.5"});
}

TEST_F(LogLines, DetectionsAreToldByClass) {
  TestResult result;
  result.outputs = {{"detection_eval", 0.75f, 0, false, {{1, 0.5f}, {3, 1.0f}}}};
  log_.OnTest(result);
  EXPECT_EQ(lines_,
            (std::vector<std::string>{"class1: 0.5", "class3: 1", "    Test net output #0: detection_eval = 0.75"}));
}

TEST_F(LogLines, TestsAreReadByParseLog) {
  log_.OnTestStart({500, 0});
  TestResult result;
  result.iteration = 500;
  result.loss = 0.25f;
  result.outputs = {{"accuracy", 0.9105f, 0}, {"loss", 0.25f, 2}};
  log_.OnTest(result);
  ASSERT_EQ(lines_.size(), 4u);
  EXPECT_EQ(lines_[0], "Iteration 500, Testing net (#0)");
  EXPECT_EQ(lines_[1], "Test loss: 0.25");
  EXPECT_EQ(lines_[2], "    Test net output #0: accuracy = 0.9105");
  EXPECT_EQ(lines_[3], "    Test net output #1: loss = 0.25 (* 2 = 0.5 loss)");
  EXPECT_EQ(Search(Logged(0), kIteration)[1], "500");
  EXPECT_EQ(Search(Logged(2), kTestOutput)[3], "0.9105");
  EXPECT_EQ(Search(Logged(3), kTestOutput)[2], "loss");
  // parse_log.sh takes a test's score from field 11.
  EXPECT_EQ(Field(Logged(2), 11), "0.9105");
}

TEST_F(LogLines, StartHasTheWordsThatParsersLookFor) {
  TrainingStart start;
  start.net = "LeNet";
  start.lr_policy = "inv";
  start.seed = 7;
  log_.OnStart(start);
  // extract_seconds.py takes the first line with "Solving" for the start; parse_log.sh wants "] Solving ".
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "Solving LeNet"), 1);
  EXPECT_EQ(std::count(lines_.begin(), lines_.end(), "Learning Rate Policy: inv"), 1);
  for (const std::string& line : lines_) EXPECT_FALSE(std::regex_search(line, kIteration)) << line;
}

TEST_F(LogLines, SnapshotsClippingAndSteps) {
  log_.OnSnapshot({100, "a_iter_100.caffemodel", "a_iter_100.solverstate", 10, 0.1});
  log_.OnClipped({3, 20, 5});
  log_.OnStep({5000, 1});
  log_.OnOverflowed({7, 32768, true});
  log_.OnOverflowed({8, 0.5, false});
  EXPECT_EQ(lines_[0], "Snapshotting to binary proto file a_iter_100.caffemodel");
  EXPECT_EQ(lines_[1], "Snapshotting solver state to binary proto file a_iter_100.solverstate");
  EXPECT_EQ(lines_[2], "Gradient clipping: scaling down gradients (L2 norm 20 > 5) by scale factor 0.25");
  EXPECT_EQ(lines_[3], "MultiStep Status: Iteration 5000, step = 1");
  EXPECT_EQ(lines_[4],
            "Loss scale: lowered to 32768, gradients of iteration 7 were not finite; that update is left out");
  EXPECT_EQ(lines_[5],
            "Loss scale: lowered to 0.5, gradients of iteration 8 were not finite; they are computed once more");
}

TEST_F(LogLines, SizesAreATableThatParsersPassOver) {
  log_.OnMeanSizes(
      {20, {{"data", "data", 0.5f, {}}, {"conv1", "conv1", 2, 0.125f}}, {{"conv1", "conv1[0]", 0.01f, 3}}});
  EXPECT_EQ(lines_, (std::vector<std::string>{
                        "Mean sizes of numbers, iteration 20:", "    layer  top or parameter  value  gradient",
                        "    ----------------------------------------", "    data   data                0.5",
                        "    conv1  conv1                 2     0.125", "    ----------------------------------------",
                        "    conv1  conv1[0]           0.01         3"}));
  for (const std::string& line : lines_) EXPECT_FALSE(std::regex_search(line, kIteration)) << line;
}

TEST_F(LogLines, WeightsAndSnapshotsTakenUpAreNamed) {
  log_.OnWeights({"a.caffemodel", {{"conv1"}, {"old"}, {"new"}}});
  log_.OnRestored({"a.solverstate", "a.caffemodel", 100, false});
  EXPECT_EQ(lines_[0], "Finetuning from a.caffemodel");
  EXPECT_EQ(lines_[1], "Copied 1 layer: conv1");
  EXPECT_EQ(lines_[2], "Ignoring source layer old");
  EXPECT_NE(lines_[3].find("new"), std::string::npos);
  EXPECT_EQ(lines_[4], "Resuming from a.solverstate");
  EXPECT_EQ(lines_.size(), 7u);
  // glog cuts lines at 30,000 characters.
  log_.OnWeights({"b.caffemodel", {std::vector<std::string>(8001, "layer"), {}, {}}});
  EXPECT_TRUE(lines_.back().starts_with("Copied 8001 layers: layer, layer, ")) << lines_.back();
  EXPECT_TRUE(lines_.back().ends_with("layer and 7981 more")) << lines_.back();
}

TEST_F(LogLines, TheBestTestIsNamed) {
  const BestFound best = {40, "accuracy", 0.75f, "net_best.caffemodel"};
  log_.OnBest(best);
  log_.OnEnd({.iteration = 60, .out_of_patience = true, .best = best});
  EXPECT_EQ(lines_,
            (std::vector<std::string>{"Best so far: accuracy = 0.75, kept in net_best.caffemodel",
                                      "Best kept: accuracy = 0.75 at iteration 40, in net_best.caffemodel",
                                      "Stopping at iteration 60: the last tests were not better (best { patience })",
                                      "Optimization Done."}));
}

TEST_F(LogLines, EndSaysWhetherAllWasDone) {
  log_.OnEnd({.iteration = 100});
  log_.OnEnd({.iteration = 50, .stopped_early = true, .failed_snapshots = 2});
  EXPECT_EQ(lines_, (std::vector<std::string>{"Optimization Done.", "Optimization stopped early."}));
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_NE(errors_[0].find("2 snapshot(s)"), std::string::npos);
}

Diagnostic Unused(int line) {
  Diagnostic diagnostic;
  diagnostic.severity = Diagnostic::Severity::kWarning;
  diagnostic.where.file = "a.prototxt";
  diagnostic.where.line = line;
  diagnostic.message = "unused";
  return diagnostic;
}

TEST_F(LogLines, NoticesAreOnceEach) {
  log_.OnNotice(Unused(3));
  log_.OnNotice(Unused(3));
  log_.OnNotice(Unused(4));
  EXPECT_EQ(notices_, (std::vector<std::string>{"a.prototxt:3: warning: unused", "a.prototxt:4: warning: unused"}));
  EXPECT_TRUE(lines_.empty());
}

}  // namespace
}  // namespace crema
