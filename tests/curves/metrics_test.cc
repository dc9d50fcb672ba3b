// What MetricsObserver writes, and what is read back.
#include <cmath>
#include <filesystem>

#include "crema/error.h"
#include "curves/metrics_testing.h"
#include "files.h"

namespace crema {
namespace {

TEST_F(Metrics, WhatIsRecordedIsReadBack) {
  {
    MetricsObserver observer(Options());
    EXPECT_EQ(observer.path(), "");
    observer.OnStart(Start());
    EXPECT_EQ(observer.path(), path());
    observer.OnTest(Tested(0, 0, {{"accuracy", 0.1f, 0}, {"loss", 2.5f, 1}}));
    observer.OnDisplay(Shown(0, 0.01f, {{"loss", 7, 1}}));
    Iterate(observer, 0, 3, 1);
    observer.OnTest(Tested(3, 1, {{"precision", 0.5f, 0}, {"precision", 0.25f, 0}}));
    TrainingEnd end;
    end.iteration = 3;
    observer.OnEnd(end);
  }
  int earlier = -1;
  const TrainingRun run = ReadTrainingRun(path(), &earlier);
  EXPECT_EQ(earlier, 0);
  EXPECT_EQ(run.name, "net");
  EXPECT_EQ(run.net, "Net \"1\"");
  EXPECT_EQ(run.max_iter, 100);
  EXPECT_EQ(run.iteration, 3);
  EXPECT_TRUE(run.ended);
  EXPECT_EQ(Names(run), (std::vector<std::string>{"train loss", "test loss", "test accuracy", "test 1 [0] precision",
                                                  "test 1 [1] precision", "learning rate"}));
  // The mean of every iteration, not what one of them displayed.
  EXPECT_EQ(Points(run, "train loss"), "0:1 1:2 2:3");
  EXPECT_EQ(Points(run, "test loss"), "0:2.5");
  EXPECT_EQ(Points(run, "test accuracy"), "0:0.1");
  EXPECT_EQ(Points(run, "test 1 [1] precision"), "3:0.25");
  EXPECT_EQ(Points(run, "learning rate"), "0:0.01");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(Metrics, ALongRunIsRecordedByMeansOfManyIterations) {
  MetricsObserver observer(Options());
  observer.OnStart(Start(5, 10000));
  Iterate(observer, 5, 30, 0);
  // The first stretch is short, so that all end where those of a run from the start do.
  EXPECT_EQ(Points(ReadTrainingRun(path()), "train loss"), "9:7 19:14.5 29:24.5");
}

TEST_F(Metrics, TwoRunsDoNotWriteOneFile) {
  MetricsObserver observer(Options());
  observer.OnStart(Start());
  // Not where the name was given, and not where it follows from the snapshots'.
  MetricsOptions named = Options();
  named.path = path();
  EXPECT_THROW(MetricsObserver{named}, EnvironmentError);
  MetricsObserver other(Options());
  other.OnStart(Start());
  Iterate(other, 0, 3, 100);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("another run is writing it"), std::string::npos) << warnings_[0];
  Iterate(observer, 0, 3, 1);
  EXPECT_EQ(Points(ReadTrainingRun(path()), "train loss"), "0:1 1:2 2:3");
}

TEST_F(Metrics, OfSeveralLossesTheTotalIsShownAsWell) {
  MetricsObserver observer(Options());
  observer.OnStart(Start());
  observer.OnDisplay(Shown(0, 0.01f, {{"loss1", 1, 0.3f}, {"loss3", 2, 1}}));
  Iterate(observer, 0, 1, 2.3);
  EXPECT_EQ(Names(ReadTrainingRun(path())),
            (std::vector<std::string>{"train loss1", "train loss3", "train total loss", "learning rate"}));
}

TEST_F(Metrics, AResumedRunGoesOnWhereItsSnapshotWas) {
  {
    MetricsObserver observer(Options());
    observer.OnStart(Start());
    observer.OnTest(Tested(0, 0, {{"accuracy", 0.1f, 0}}));
    Iterate(observer, 0, 5, 100);
    observer.OnTest(Tested(4, 0, {{"accuracy", 0.4f, 0}}));
  }
  MetricsObserver observer(Options());
  observer.OnStart(Start(3));
  Iterate(observer, 3, 6, 200);
  observer.OnTest(Tested(4, 0, {{"accuracy", 0.5f, 0}}));
  int earlier = -1;
  const TrainingRun run = ReadTrainingRun(path(), &earlier);
  EXPECT_EQ(earlier, 0);
  EXPECT_EQ(Points(run, "train loss"), "0:100 1:101 2:102 3:203 4:204 5:205");
  EXPECT_EQ(Points(run, "test accuracy"), "0:0.1 4:0.5");
  EXPECT_FALSE(run.ended);
}

TEST_F(Metrics, TheClockOfAResumedRunGoesOnToo) {
  const std::string file = Write("a.jsonl",
                                 "{\"event\": \"start\", \"iteration\": 0}\n"
                                 "{\"event\": \"train\", \"iteration\": 1, \"seconds\": 10, \"loss\": 1}\n"
                                 "{\"event\": \"train\", \"iteration\": 2, \"seconds\": 20, \"loss\": 1}\n"
                                 "{\"event\": \"start\", \"iteration\": 2}\n"
                                 "{\"event\": \"train\", \"iteration\": 2, \"seconds\": 1.5, \"loss\": 1}\n");
  EXPECT_EQ(ReadTrainingRun(file).curves[0].points.back().seconds, 11.5);
}

TEST_F(Metrics, TheLastOfSeveralRunsCounts) {
  for (const double loss : {1.0, 2.0}) {
    MetricsObserver observer(Options());
    observer.OnStart(Start());
    Iterate(observer, 0, 1, loss);
  }
  int earlier = 0;
  EXPECT_EQ(Points(ReadTrainingRun(path(), &earlier), "train loss"), "0:2");
  EXPECT_EQ(earlier, 1);
}

TEST_F(Metrics, AKilledRunsHalfLineHarmsNothing) {
  {
    MetricsObserver observer(Options());
    observer.OnStart(Start());
    Iterate(observer, 0, 2, 1);
  }
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 10);
  EXPECT_EQ(Points(ReadTrainingRun(path()), "train loss"), "0:1");
  MetricsObserver observer(Options());
  observer.OnStart(Start(1));
  Iterate(observer, 1, 2, 5);
  EXPECT_EQ(Points(ReadTrainingRun(path()), "train loss"), "0:1 1:6");
}

TEST_F(Metrics, AFileOfOtherLinesIsNamedAndHalfLinesArePassedOver) {
  try {
    ReadTrainingRun(Write("other.jsonl", "\n{\"loss\": 1}\n"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("other.jsonl:2"), std::string::npos) << error.what();
  }
  // What a full disk leaves.
  EXPECT_EQ(Points(ReadTrainingRun(Write("a.jsonl",
                                         "{\"event\": \"start\", \"iteration\": 0}\n{\"event\": tra\n"
                                         "{\"event\": \"train\", \"iteration\": 1, \"loss\": 2}\n")),
                   "train loss"),
            "1:2");
}

TEST_F(Metrics, AFileWithoutItsBeginningIsRead) {
  const std::string rest =
      "{\"event\": \"train\", \"iteration\": 7, \"loss\": 2}\n{\"event\": \"train\", \"iteration\": 8, \"loss\": 1}\n";
  for (const std::string half :
       {"eration\": 6, \"loss\": 3}\n", "{\"accuracy\": 0.5}, \"loss_weights\": {}}\n", "}\n\n"}) {
    const TrainingRun run = ReadTrainingRun(Write("cut.jsonl", half + rest));
    EXPECT_EQ(Points(run, "train loss"), "7:2 8:1") << half;
    ASSERT_EQ(run.warnings.size(), 1u) << half;
    EXPECT_NE(run.warnings[0].ToString().find("cut.jsonl:1: warning: passed over"), std::string::npos)
        << run.warnings[0].ToString();
  }
  EXPECT_TRUE(ReadTrainingRun(Write("whole.jsonl", rest)).warnings.empty());
  // More than that is another file.
  EXPECT_THROW(ReadTrainingRun(Write("other.jsonl", "{\"a\": 1}\n{\"b\": 1}\n" + rest)), UserError);
}

TEST_F(Metrics, NumbersThatCannotBeAreNoPoints) {
  const TrainingRun run = ReadTrainingRun(Write(
      "a.jsonl",
      "{\"event\": \"start\", \"iteration\": 0, \"max_iter\": 1e300}\n"
      "{\"event\": \"train\", \"iteration\": 1, \"loss\": null}\n"
      "{\"event\": \"train\", \"iteration\": 2}\n"
      "{\"event\": \"train\", \"iteration\": 3, \"loss\": 0.5}\n"
      "{\"event\": \"train\", \"iteration\": -4, \"loss\": 0.25}\n"
      "{\"event\": \"test\", \"iteration\": 3, \"loss\": null, \"outputs\": {\"a\": [0.5, null], \"b\": \"x\"}}\n"));
  EXPECT_EQ(Names(run), (std::vector<std::string>{"train loss", "test [0] a"}));
  EXPECT_EQ(Points(run, "train loss"), "3:0.5");
}

TEST_F(Metrics, ALossOfAnotherWeightIsNotItsTotal) {
  MetricsObserver observer(Options());
  observer.OnStart(Start());
  observer.OnDisplay(Shown(0, 0.01f, {{"loss", 2.3f, 0.1f}}));
  Iterate(observer, 0, 1, 0.23);
  observer.OnTest(Tested(0, 0, {{"loss", 2.2f, 0.1f}}));
  const TrainingRun run = ReadTrainingRun(path());
  EXPECT_EQ(Points(run, "train loss"), "0:2.3");
  EXPECT_EQ(Points(run, "test loss"), "0:2.2");
  EXPECT_EQ(Points(run, "train total loss"), "0:0.23");
}

TEST_F(Metrics, ALossThatIsNotTrainedIsBestWhereItIsLowest) {
  {
    MetricsObserver observer(Options());
    observer.OnStart(Start());
    for (int i = 0; i < 3; ++i) {
      observer.OnTest(Tested(i, 0, {{"other", 2.0f - static_cast<float>(i), 0, true}}));
      Iterate(observer, i, i + 1, 1);
    }
  }
  const TrainingRun run = ReadTrainingRun(path());
  // It is no part of the total.
  EXPECT_EQ(Names(run), (std::vector<std::string>{"train total loss", "test other"}));
  EXPECT_EQ(BestPoint(run.curves[1]).iteration, 2);

  // Files that name trained losses only.
  const std::string text =
      "{\"event\": \"start\", \"iteration\": 0}\n"
      "{\"event\": \"test\", \"iteration\": 0, \"outputs\": {\"a\": 1, \"b\": 1}, \"loss_weights\": {\"b\": 1}}\n"
      "{\"event\": \"test\", \"iteration\": 1, \"outputs\": {\"a\": 0, \"b\": 0}, \"loss_weights\": {\"b\": 1}}\n";
  const TrainingRun old = ReadTrainingRun(Write("old.jsonl", text));
  ASSERT_EQ(Names(old), (std::vector<std::string>{"test b", "test a"}));
  EXPECT_EQ(BestPoint(old.curves[0]).iteration, 1);
  EXPECT_EQ(BestPoint(old.curves[1]).iteration, 0);
  const TrainingRun both = ReadTrainingRun(
      Write("both.jsonl",
            text + "{\"event\": \"test\", \"iteration\": 2, \"outputs\": {\"a\": 2}, \"loss_weights\": {\"a\": 0}}\n"));
  ASSERT_EQ(Names(both), (std::vector<std::string>{"test a", "test b"}));
  EXPECT_EQ(BestPoint(both.curves[0]).iteration, 1);
}

TEST_F(Metrics, OfAVeryLongRunTheDisplaysAreShownWhereTheyAreMore) {
  MetricsOptions options = Options();
  options.curves = folder_ / "net.svg";
  MetricsObserver observer(options);
  observer.OnStart(Start(0, 200000000));
  for (int i = 0; i < 3; ++i) observer.OnDisplay(Shown(i, 0.01f, {{"loss", 3.0f - static_cast<float>(i), 1}}));
  EXPECT_TRUE(std::filesystem::exists(options.curves));
  EXPECT_EQ(Points(ReadTrainingRun(path()), "train loss"), "0:3 1:2 2:1");
  Iterate(observer, 0, 3, 1);
  observer.OnEnd({.iteration = 3});
  EXPECT_EQ(Points(ReadTrainingRun(path()), "train loss"), "0:3 1:2 2:1");
  EXPECT_NE(ReadFile(path()).find("\"iterations\": 3, \"loss\": 2}"), std::string::npos)
      << "the last mean is written, too";
}

TEST_F(Metrics, SizesAreWrittenAndAreNoCurves) {
  MetricsObserver observer(Options());
  observer.OnStart(Start());
  observer.OnMeanSizes({0,
                        {{"ip", "ip", 2, 0.5f}, {"relu", "ip", 1, 0.25f}, {"loss", "loss", NAN, {}}},
                        {{"ip", "ip[0]", 0.1f, 3}, {"ip", "ip[1]", 0, 4}}});
  Iterate(observer, 0, 1, 1);
  EXPECT_NE(
      ReadFile(path()).find("\"tops\": {\"ip\": {\"ip\": [2, 0.5]}, \"relu\": {\"ip\": [1, 0.25]}, \"loss\": "
                            "{\"loss\": [null]}}, \"parameters\": {\"ip\": {\"ip[0]\": [0.1, 3], \"ip[1]\": [0, 4]}}}"),
      std::string::npos)
      << ReadFile(path());
  EXPECT_EQ(Names(ReadTrainingRun(path())), std::vector<std::string>{"train loss"});
}

TEST_F(Metrics, AResumedRunMayHaveAnotherEnd) {
  for (const auto& [from, end] : {std::pair(0, 100), std::pair(1, 900)}) {
    MetricsObserver observer(Options());
    observer.OnStart(Start(from, end));
    Iterate(observer, from, from + 1, 1);
  }
  EXPECT_EQ(ReadTrainingRun(path()).max_iter, 900);
}

}  // namespace
}  // namespace crema
