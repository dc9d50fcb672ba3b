// Logs of trainings, line by line as programs write them.
#include <utility>

#include "crema/error.h"
#include "curves/curve_writers.h"
#include "curves/run_files.h"
#include "report/log_observer.h"

namespace crema {
namespace {

class TrainingLog : public RunFiles {
 protected:
  TrainingRun Run(const std::string& text, int* earlier = nullptr) {
    return ReadTrainingRun(Write("caffe.log", text), earlier);
  }
};

// As BVLC Caffe writes it.
constexpr char kCaffe[] =
    "I0312 23:59:50.500000  4242 caffe.cpp:251] Starting Optimization\n"
    "I0312 23:59:50.500000  4242 solver.cpp:279] Solving LeNet\n"
    "I0312 23:59:50.500000  4242 solver.cpp:280] Learning Rate Policy: inv\n"
    "I0312 23:59:51.000000  4242 solver.cpp:337] Iteration 0, Testing net (#0)\n"
    "I0312 23:59:52.000000  4242 solver.cpp:404]     Test net output #0: accuracy = 0.1121\n"
    "I0312 23:59:52.000000  4242 solver.cpp:404]     Test net output #1: loss = 2.36 (* 1 = 2.36 loss)\n"
    "I0312 23:59:53.000000  4242 solver.cpp:228] Iteration 0, loss = 2.4\n"
    "I0312 23:59:53.000000  4242 solver.cpp:244]     Train net output #0: loss = 2.5 (* 1 = 2.5 loss)\n"
    "I0312 23:59:53.000000  4242 sgd_solver.cpp:106] Iteration 0, lr = 0.01\n"
    "I0313 00:00:03.000000  4242 solver.cpp:228] Iteration 100 (10 iter/s, 10s/100 iters), loss = 0.25\n"
    "I0313 00:00:03.000000  4242 solver.cpp:244]     Train net output #0: loss = 0.3 (* 1 = 0.3 loss)\n"
    "I0313 00:00:03.000000  4242 sgd_solver.cpp:106] Iteration 100, lr = 9.9e-3\n"
    "I0313 00:00:04.000000  4242 solver.cpp:454] Snapshotting to binary proto file lenet_iter_100.caffemodel\n";

TEST_F(TrainingLog, OfCaffe) {
  const TrainingRun run = Run(kCaffe);
  EXPECT_EQ(run.name, "caffe");
  EXPECT_EQ(run.net, "LeNet");
  EXPECT_FALSE(run.ended);
  EXPECT_EQ(Names(run), (std::vector<std::string>{"train loss", "test loss", "test accuracy", "learning rate"}));
  EXPECT_EQ(Points(run, "train loss"), "0:2.4 100:0.25");  // smoothed over average_loss
  EXPECT_EQ(Points(run, "test accuracy"), "0:0.1121");
  EXPECT_EQ(Points(run, "learning rate"), "0:0.01 100:0.0099");
  EXPECT_EQ(run.curves[0].points[1].seconds, 12.5);  // across midnight
}

TEST_F(TrainingLog, SaysOfALossThatIsNotTrainedThatItIsOne) {
  std::string text;
  LogObserver log([&text](bool, const std::string& line) { text += line + "\n"; }, [](bool, const std::string&) {});
  for (int i = 0; i < 2; ++i) {
    log.OnTestStart({i, 0});
    TestResult result;
    result.iteration = i;
    result.outputs = {{"other", 1.0f - static_cast<float>(i), 0, true}};
    log.OnTest(result);
  }
  const TrainingRun run = Run(text);
  ASSERT_EQ(Names(run), std::vector<std::string>{"test other"}) << text;
  EXPECT_EQ(BestPoint(run.curves[0]).iteration, 1) << text;
}

TEST_F(TrainingLog, GoesOnWhereItWasResumed) {
  const TrainingRun run = Run(std::string(kCaffe) +
                              "I0401 10:00:00.000000  1 solver.cpp:753] Starting Optimization\n"
                              "I0401 10:00:00.000000  1 sgd_solver.cpp:318] Restoring previous solver status from "
                              "lenet_iter_50.solverstate\n"
                              "I0401 10:00:01.000000  1 solver.cpp:228] Iteration 50, loss = 0.5\n"
                              "I0401 10:00:05.000000  1 solver.cpp:228] Iteration 100, loss = 0.4\n"
                              "I0401 10:00:05.000000  1 solver.cpp:327] Optimization Done.\n");
  EXPECT_EQ(Points(run, "train loss"), "0:2.4 50:0.5 100:0.4");
  EXPECT_EQ(run.curves[0].points[2].seconds, 7.5);  // 2.5 and 5: the pause does not count
  EXPECT_TRUE(run.ended);
}

// The disk was full in the middle of the first line of the resumed run, or of the one before.
TEST_F(TrainingLog, GoesOnBehindHalfALine) {
  const TrainingRun run =
      Run(std::string(kCaffe) +
          "I0401 10:00:00.000000  1 solver.cpp:4I0401 10:00:00.000000  1 log.cc:102] Resuming from "
          "lenet_iter_50.solverstate\n"
          "I0401 10:00:00.000000  1 log.cc:103] Restored iteration 50, weights from lenet.caffemodel\n"
          "I0401 10:00:01.000000  1 solver.cpp:228] Iteration 50, loss = 0.5\n");
  EXPECT_EQ(Points(run, "train loss"), "0:2.4 50:0.5");
}

TEST_F(TrainingLog, TheLastOfSeveralRunsCounts) {
  int earlier = 0;
  const TrainingRun run = Run(std::string(kCaffe) +
                                  "I0401 10:00:00.000000  1 caffe.cpp:251] Starting Optimization\n"
                                  "I0401 10:00:00.000000  1 solver.cpp:279] Solving Other\n"
                                  "I0401 10:00:01.000000  1 solver.cpp:228] Iteration 0, loss = 7\n",
                              &earlier);
  EXPECT_EQ(earlier, 1);
  EXPECT_EQ(run.net, "Other");
  EXPECT_EQ(Points(run, "train loss"), "0:7");
}

TEST_F(TrainingLog, OfNvidiasForkWithEpochsAndLongDates) {
  const TrainingRun run = Run(
      "I20240312 10:00:00.000000  1 solver.cpp:228] Iteration 20 (7.5 iter/s, 2.6s/20 iter), 0.1/4ep, loss = 3.5\n"
      "I20240312 10:00:02.000000  1 solver.cpp:228] Iteration 40 (7.5 iter/s, 2.6s/20 iter), 0.2/4ep, loss = 3.25\n");
  EXPECT_EQ(Points(run, "train loss"), "20:3.5 40:3.25");
  EXPECT_EQ(run.curves[0].points[1].seconds, 2);
}

TEST_F(TrainingLog, OfCremaAndOutputsOfSeveralNumbers) {
  std::string text;
  LogObserver log([&text](bool, const std::string& line) { text += "I1121 12:34:56.5  7 log.cc:1] " + line + "\n"; },
                  [](bool, const std::string&) {});
  TrainingStart start;
  start.net = "Mine";
  log.OnStart(start);
  TestStart test;
  test.iteration = 10;
  test.net = 1;
  log.OnTestStart(test);
  TestResult result;
  result.loss = 0.75f;
  result.outputs = {{"by_class", 0.5f, 0}, {"by_class", 0.25f, 0}, {"a = b", 2, 0}};
  log.OnTest(result);
  const TrainingRun run = Run(text);
  EXPECT_EQ(run.net, "Mine");
  EXPECT_EQ(Points(run, "test 1 loss"), "10:0.75");
  EXPECT_EQ(Points(run, "test 1 [1] by_class"), "10:0.25");
}

TEST_F(TrainingLog, NumbersThatCannotBeAreNoPoints) {
  EXPECT_EQ(Points(Run("Iteration 1, loss = 2\nIteration 99999999999, loss = 3\nIteration 2, loss = 1.#QNAN\n"
                       "Iteration 3, loss = -1.#IND\nIteration 4, loss = nan\nIteration 5, loss = 1\n"),
                   "train loss"),
            "1:2 5:1");
}

TEST_F(TrainingLog, TellsWhereALossIsNotFinite) {
  const std::string begins = "Solving net\nIteration 1, loss = 2\nIteration 10, loss = nan\nIteration 20, loss = inf\n";
  EXPECT_EQ(Run(begins).not_finite_from, 10);
  EXPECT_EQ(Run("Iteration 1, loss = 2\n").not_finite_from, -1);
  EXPECT_EQ(Run(begins + "Resuming from a.solverstate\nStarting Optimization\nIteration 5, loss = 1\n").not_finite_from,
            -1);
  EXPECT_NE(CurvesText({Run(begins)}, {}).find("a loss is not finite (nan, inf) from iteration 10 on\n"),
            std::string::npos);
  EXPECT_NE(CurvesSvg({Run(begins)}, {}).find("iteration 20, a loss not finite from 10 on"), std::string::npos);
}

TEST_F(TrainingLog, AClockThatWasSetBackIsNoYear) {
  const TrainingRun run =
      Run("I1025 02:59:50.000000  1 solver.cpp:1] Iteration 0, loss = 2\n"
          "I1025 02:00:10.000000  1 solver.cpp:1] Iteration 10, loss = 1\n"
          "I1025 03:00:10.000000  1 solver.cpp:1] Iteration 20, loss = 1\n");
  EXPECT_EQ(run.curves[0].points[1].seconds, 0);
  EXPECT_EQ(run.curves[0].points[2].seconds, 20);
  const TrainingRun over =
      Run("I1231 23:59:50.000000  1 solver.cpp:1] Iteration 0, loss = 2\n"
          "I0101 00:00:10.000000  1 solver.cpp:1] Iteration 10, loss = 1\n");
  EXPECT_EQ(over.curves[0].points[1].seconds, 20);
}

TEST_F(TrainingLog, FebruaryMayHave29Days) {
  for (const std::string year : {"", "2024"}) {
    const TrainingRun run = Run("I" + year + "0228 23:00:00.000000  1 solver.cpp:1] Iteration 0, loss = 2\n" + "I" +
                                year + "0229 23:00:00.000000  1 solver.cpp:1] Iteration 10, loss = 1\n" + "I" + year +
                                "0301 23:00:00.000000  1 solver.cpp:1] Iteration 20, loss = 1\n");
    EXPECT_EQ(run.curves[0].points[1].seconds, 86400) << year;
    EXPECT_EQ(run.curves[0].points[2].seconds, 2 * 86400) << year;
  }
  const TrainingRun other =
      Run("I20230228 23:00:00.000000  1 solver.cpp:1] Iteration 0, loss = 2\n"
          "I20230301 23:00:00.000000  1 solver.cpp:1] Iteration 10, loss = 1\n");
  EXPECT_EQ(other.curves[0].points[1].seconds, 86400);
}

TEST_F(TrainingLog, OtherTextHasNoCurves) {
  for (const char* text : {"", "hello\n", "Iteration of things, loss = none\n", "I1\n] \nI1121 \n"}) {
    EXPECT_THROW(Run(text), UserError) << text;
  }
  EXPECT_THROW(ReadTrainingRun(folder_.path()), UserError);
  EXPECT_THROW(ReadTrainingRun(folder_ / "none"), UserError);
}

}  // namespace
}  // namespace crema
