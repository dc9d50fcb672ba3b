#include <algorithm>
#include <cmath>

#include "crema/error.h"
#include "curves/curve_writers.h"
#include "curves/panels.h"
#include "curves/run_files.h"
#include "files.h"

namespace crema {
namespace {

Curve CurveOf(const std::string& output, CurveKind kind, const std::vector<double>& values, int every = 100) {
  Curve curve;
  curve.output = output;
  curve.kind = kind;
  if (output == "loss") curve.loss_weight = 1.0f;
  for (size_t i = 0; i < values.size(); ++i) {
    curve.points.push_back({static_cast<int>(i) * every, static_cast<double>(i) * 60, values[i]});
  }
  return curve;
}

TrainingRun RunOf(const std::string& name, std::vector<Curve> curves) {
  TrainingRun run;
  run.name = name;
  run.iteration = 200;
  run.max_iter = 1000;
  run.curves = std::move(curves);
  return run;
}

TrainingRun Small(const std::string& name = "net") {
  return RunOf(name, {CurveOf("loss", CurveKind::kTraining, {2, 1, 0.4}), CurveOf("loss", CurveKind::kTest, {2.5, 0.5}),
                      CurveOf("a<b", CurveKind::kTest, {0.25, 0.75}),
                      CurveOf("learning rate", CurveKind::kLearningRate, {0.01, 0.001})});
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class CurveWriters : public RunFiles {};

TEST_F(CurveWriters, OneOutputIsOnePanel) {
  const std::vector<TrainingRun> runs = {Small("a"), Small("b")};
  const std::vector<Panel> panels = Panels(runs);
  ASSERT_EQ(panels.size(), 3u);
  EXPECT_EQ(panels[0].title, "loss");
  ASSERT_EQ(panels[0].curves.size(), 4u);
  EXPECT_EQ(panels[0].curves[3].label, "b: test");
  EXPECT_EQ(panels[1].title, "a<b");
  EXPECT_EQ(panels[2].title, "learning rate");
  EXPECT_EQ(panels[2].curves[1].label, "b");
}

TEST_F(CurveWriters, AxesHoldAllValues) {
  const std::vector<TrainingRun> runs = {
      RunOf("a", {CurveOf("loss", CurveKind::kTraining, {100, 0.1}), CurveOf("flat", CurveKind::kTest, {3, 3}),
                  CurveOf("zero", CurveKind::kTest, {0, 0}), CurveOf("signed", CurveKind::kTest, {-5, 200})})};
  const std::vector<Panel> panels = Panels(runs);
  EXPECT_TRUE(panels[0].values.logarithmic);
  EXPECT_FALSE(panels[3].values.logarithmic);
  for (const Panel& panel : panels) {
    EXPECT_LT(panel.values.low, panel.values.high) << panel.title;
    for (const CurvePoint& point : panel.curves[0].curve->points) {
      EXPECT_GT(panel.values.Place(point.value), 0) << panel.title;
      EXPECT_LT(panel.values.Place(point.value), 1) << panel.title;
    }
    const std::vector<Tick> ticks = ValueTicks(panel.values, 5);
    EXPECT_GE(ticks.size(), 2u) << panel.title;
    EXPECT_LE(ticks.size(), 12u) << panel.title;
    for (const Tick& tick : ticks) {
      EXPECT_GE(tick.value, panel.values.low) << panel.title;
      EXPECT_LE(tick.value, panel.values.high) << panel.title;
    }
  }
}

TEST_F(CurveWriters, TicksAreRoundNumbers) {
  const auto labels = [](const std::vector<Tick>& ticks) {
    std::string text;
    for (const Tick& tick : ticks) text += (text.empty() ? "" : " ") + tick.label;
    return text;
  };
  EXPECT_EQ(labels(ValueTicks({0.18, 1.03, false}, 4)), "0.5 1");
  EXPECT_EQ(labels(ValueTicks({-0.3, 0.3, false}, 6)), "-0.3 -0.2 -0.1 0 0.1 0.2 0.3");
  EXPECT_EQ(labels(ValueTicks({0.03, 0.6, true}, 5)), "0.05 0.1 0.2 0.5");
  EXPECT_EQ(labels(ValueTicks({1e-4, 100, true}, 5)), "0.0001 0.001 0.01 0.1 1 10 100");
  EXPECT_EQ(labels(ProgressTicks({0, 4690, false}, 5, {})), "0 1,000 2,000 3,000 4,000");
  EXPECT_EQ(labels(ProgressTicks({0, 3, false}, 8, {})), "0 1 2 3");
  CurveOptions over_time;
  over_time.over_time = true;
  EXPECT_EQ(labels(ProgressTicks({0, 400, false}, 4, over_time)), "0s 2m00s 4m00s 6m00s");
}

TEST_F(CurveWriters, SmoothingKeepsMeansAndEnds) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 101; ++i) points.push_back({i, 0, i % 2 == 0 ? 1.0 : 0.0});
  const std::vector<CurvePoint> smoothed = Smoothed(points, 21);
  ASSERT_EQ(smoothed.size(), points.size());
  EXPECT_EQ(smoothed[0].value, 1);
  EXPECT_NEAR(smoothed[50].value, 11.0 / 21, 1e-12);
  // A straight line stays one.
  for (CurvePoint& point : points) point.value = 3.0 * point.iteration;
  for (const CurvePoint& point : Smoothed(points, 21)) EXPECT_NEAR(point.value, 3.0 * point.iteration, 1e-9);
  const std::vector<CurvePoint> thinned = Thinned(points, 25);
  EXPECT_LE(thinned.size(), 25u);
  EXPECT_NEAR(thinned[1].value, 3 * 7, 1e-9);  // of 5 to 9
}

TEST_F(CurveWriters, PicturesNameWhatTheyShow) {
  const std::string svg = CurvesSvg({Small()}, {});
  EXPECT_EQ(Count(svg, "<svg "), 1);
  EXPECT_EQ(Count(svg, "</svg>"), 1);
  EXPECT_EQ(Count(svg, "<text "), Count(svg, "</text>"));
  EXPECT_NE(svg.find("net, iteration 200 of 1,000"), std::string::npos);
  EXPECT_NE(svg.find(">loss (logarithmic)<"), std::string::npos);
  EXPECT_NE(svg.find("<title>a&lt;b 0.75 at iteration 100</title>"), std::string::npos);
  EXPECT_EQ(svg.find("a<b"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_NE(CurvesSvg({Small("x"), Small("y")}, {}).find("x: train"), std::string::npos);
  EXPECT_EQ(CurvesHtml({Small()}, {}).find("refresh"), std::string::npos);
}

TEST_F(CurveWriters, MoreCurvesThanCanBeToldApartAreCounted) {
  std::vector<Curve> curves;
  for (int i = 0; i < 20; ++i) {
    curves.push_back(CurveOf("precision", CurveKind::kTest, {0.1, 0.2}));
    curves.back().element = "[" + std::to_string(i) + "]";
  }
  EXPECT_NE(CurvesSvg({RunOf("a", curves)}, {}).find("8 more are not drawn"), std::string::npos);
}

TEST_F(CurveWriters, ExtremeValuesEndSomewhere) {
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{1e-300, 1e100}, {-1e308, 1e308}, {1e-320, 1}, {0, 1e308}, {1e18, 0.5}}) {
    const std::vector<TrainingRun> runs = {RunOf("a", {CurveOf("loss", CurveKind::kTraining, values, 2147483647)})};
    EXPECT_FALSE(CurvesText(runs, {}).empty());
    const std::string svg = CurvesSvg(runs, {});
    EXPECT_EQ(svg.find("nan"), std::string::npos) << values[0];
    EXPECT_EQ(svg.find("inf"), std::string::npos) << values[0];
  }
}

TEST_F(CurveWriters, ASpikeDoesNotDrownWhatComesBehindIt) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 300; ++i) points.push_back({i, 0, i < 3 ? 1e18 : 0.5});
  EXPECT_EQ(Smoothed(points, 21)[200].value, 0.5);
}

TEST_F(CurveWriters, LongCurvesDoNotMakeLongFiles) {
  std::vector<double> values(200000, 1);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + std::sin(static_cast<double>(i));
  EXPECT_LT(CurvesSvg({RunOf("a", {CurveOf("loss", CurveKind::kTraining, values)})}, {}).size(), 100000u);
}

TEST_F(CurveWriters, TablesHaveALineForEachIteration) {
  EXPECT_EQ(CurvesCsv({Small("a,b")}),
            "run,iteration,seconds,train loss,test loss,test a<b,learning rate\n"
            "\"a,b\",0,0.000,2,2.5,0.25,0.01\n"
            "\"a,b\",100,60.000,1,0.5,0.75,0.001\n"
            "\"a,b\",200,120.000,0.4,,,\n");
  const std::string floats = CurvesCsv({RunOf("f", {CurveOf("loss", CurveKind::kTest, {2.3F, 1e-5F, 1e300})})});
  EXPECT_NE(floats.find(",2.3\n"), std::string::npos) << floats;
  EXPECT_NE(floats.find(",1e-05\n"), std::string::npos) << floats;
  EXPECT_NE(floats.find(",1e+300\n"), std::string::npos) << floats;
}

TEST_F(CurveWriters, TextTellsFirstLastAndBest) {
  const std::string text = CurvesText({Small()}, {});
  EXPECT_NE(text.find("test loss           2    2.5    0.5   0.5           100\n"), std::string::npos) << text;
  EXPECT_NE(text.find("test a<b            2   0.25   0.75  0.75           100\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nloss (logarithmic):\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("\na<b"), std::string::npos) << text;
  // One that falls from the upper left to the lower right.
  const std::string falls = CurvesText({RunOf("a", {CurveOf("loss", CurveKind::kTraining, {3, 2, 1}, 1)})}, {});
  EXPECT_NE(falls.find("|\u2824\u28C0\u2840\u2800"), std::string::npos) << falls;
  EXPECT_NE(falls.find("\u2800\u2808\u2809\u2812\n"), std::string::npos) << falls;
}

TEST_F(CurveWriters, NamesDoNotReachTheTerminalAsCommands) {
  EXPECT_EQ(CurvesText({RunOf("a\x1b[2J", {CurveOf("b\x7f", CurveKind::kTest, {1})})}, {}).find_first_of("\x1b\x7f"),
            std::string::npos);
}

TEST_F(CurveWriters, TheEndingSaysWhatIsWritten) {
  WriteCurves({Small()}, {}, folder_ / "a.svg");
  WriteCurves({Small()}, {}, folder_ / "a.html");
  WriteCurves({Small()}, {}, folder_ / "a.csv");
  EXPECT_TRUE(ReadFile(folder_ / "a.svg").starts_with("<?xml"));
  EXPECT_TRUE(ReadFile(folder_ / "a.html").starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(ReadFile(folder_ / "a.csv").starts_with("run,"));
  EXPECT_THROW(WriteCurves({Small()}, {}, folder_ / "a.png"), UserError);
  EXPECT_THROW(WriteCurves({Small()}, {}, folder_ / "none/a.svg"), EnvironmentError);
}

}  // namespace
}  // namespace crema
