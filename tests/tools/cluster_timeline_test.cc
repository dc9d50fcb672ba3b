// What a training on several machines shows of itself: timelines, tables and warnings of the real `train`.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include "report/json_reader.h"
#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;
using testing_json::Json;
using testing_json::ParseJson;

// How many spans of each category there are, by the name of the track.
using SpanCounts = std::map<std::string, std::map<std::string, int>>;

// Spans of a track lie beside or within each other.
SpanCounts SpansOf(const Json& trace) {
  std::map<int, std::string> names;
  for (const Json& event : trace.items) {
    if (event["name"].string == "thread_name") {
      names[static_cast<int>(event["tid"].number)] = event["args"]["name"].string;
    }
  }
  SpanCounts counts;
  std::map<int, double> ends;
  for (const Json& event : trace.items) {
    if (event["ph"].string != "X") continue;
    const int track = static_cast<int>(event["tid"].number);
    const std::string category = event["cat"].string;
    ++counts[names[track]][category];
    const double begin = event["ts"].number, end = begin + event["dur"].number;
    if (category == "averaging" || category == "journal") {
      EXPECT_LE(end, ends[track] + 0.01) << "not within the round";
    } else {
      EXPECT_GE(begin, ends[track] - 0.01) << event["name"].string;
      ends[track] = end;
    }
  }
  return counts;
}

SpanCounts SpansOf(const ClusterFolder& folder) { return SpansOf(ParseJson(ReadText(folder / "timeline.json"))); }

TEST(ClusterTimeline, HoldsEveryRoundOfEveryWorkerAndChangesNothing) {
  const std::string settings = "local_workers: 2 local_steps: 5";
  const ClusterFolder plain(settings, {.max_iter = 100}), shown(settings, {.max_iter = 100});
  ASSERT_EQ(plain.Run().exit_code, 0);
  const Finished run = shown.Run({"--timeline=timeline.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(SameModel(plain, shown, 100));
  SpanCounts spans = SpansOf(shown);
  EXPECT_EQ(spans["coordinator: rounds"]["round"], 20);
  EXPECT_GT(spans["coordinator: rounds"]["journal"], 15);
  EXPECT_EQ(spans["coordinator: tests and snapshots"]["snapshot"], 5);
  EXPECT_EQ(spans["coordinator: tests and snapshots"]["test"], 3);
  int workers = 0;
  for (const auto& [track, categories] : spans) {
    if (!track.starts_with("place ")) continue;
    ++workers;
    EXPECT_TRUE(Matches(track, "^place [01]: local-[01]$")) << track;
    EXPECT_EQ(categories.at("training"), 20) << track;
    EXPECT_EQ(categories.count("late"), 0u);
  }
  EXPECT_EQ(workers, 2);
  EXPECT_EQ(Count(run.err, "What each worker did:"), 1) << run.err;
  const char* row = R"(\]     +[01] +local-[01] +1600 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +20 +0\n)";
  EXPECT_EQ(FindAll(run.err, row, 0).size(), 2u) << run.err;
  EXPECT_FALSE(run.Says("no round averaged")) << run.err;
}

TEST(ClusterTimeline, ShowsExchangesAmongWorkers) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5 topology: SHARDED", {.max_iter = 60, .snapshot = 0});
  const Finished run = folder.Run({"--timeline=timeline.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  SpanCounts spans = SpansOf(folder);
  EXPECT_EQ(spans["coordinator: rounds"]["round"], 12);
  int exchanges = 0;
  for (const auto& [track, categories] : spans) {
    if (track.starts_with("place ") && categories.count("exchanging") > 0) exchanges += categories.at("exchanging");
  }
  EXPECT_EQ(exchanges, 24);
}

TEST(ClusterTimeline, ShowsValuesThatAreUnderWayWhileWorkersTrainAhead) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5 overlap: DELAYED", {.max_iter = 60, .snapshot = 0});
  const Finished run = folder.Run({"--timeline=timeline.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  SpanCounts spans = SpansOf(folder);
  EXPECT_EQ(spans["coordinator: rounds"]["round"], 12);
  EXPECT_EQ(spans.count("place 0: values under way") + spans.count("place 1: values under way"), 2u);
}

TEST(ClusterTimeline, IsWholeWhereTrainingIsStoppedOrFails) {
  const ClusterFolder stopped("local_workers: 2 local_steps: 5", {.max_iter = 100000, .snapshot = 0});
  const auto running = stopped.Start({"--timeline=timeline.json"});
  ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
  running->Signal(SIGINT);
  const Finished run = running->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(SpansOf(stopped)["coordinator: rounds"]["round"], 3);

  // A record of no class ends training.
  const ClusterFolder failing(
      "local_workers: 2 local_steps: 5",
      {.max_iter = 1000, .test_interval = 1000, .bad_record = 200, .more = "test_initialization: false\n"});
  const Finished failed = failing.Run({"--timeline=timeline.json"});
  EXPECT_NE(failed.exit_code, 0) << failed.err;
  SpansOf(failing);
  EXPECT_TRUE(failed.Says("What each worker did:")) << failed.err;
}

TEST(ClusterTimeline, WhatACrashLeavesCanBeRead) {
  const ClusterFolder folder("local_workers: 2 local_steps: 5", {.max_iter = 1000000, .snapshot = 0});
  {
    const auto running = folder.Start({"--timeline=timeline.json"});
    ASSERT_TRUE(running->WaitFor("Iteration 20, lr")) << running->Err();
    // A second after it happened it is in the file.
    for (int i = 0; i < 200 && ReadText(folder / "timeline.json").find("round 2\"") == std::string::npos; ++i) {
      ASSERT_TRUE(running->WaitFor(", lr = ", Count(running->Err(), ", lr = ") + 1));
    }
    running->Signal(SIGKILL);
    running->Wait();
  }
  // The workers' socket, which the next coordinator would remove.
  fs::remove_all(folder / "tmp");
  fs::create_directory(folder / "tmp");
  std::string text = ReadText(folder / "timeline.json");
  EXPECT_FALSE(text.ends_with("]\n"));
  // Each event has a line, behind which a comma follows; the last one may be cut.
  text.resize(text.rfind(",\n"));
  SpanCounts spans = SpansOf(ParseJson(text + "]"));
  EXPECT_GT(spans["coordinator: rounds"]["round"], 1);
}

TEST(ClusterTimeline, MistakesAreExplained) {
  const ClusterFolder folder("", {.max_iter = 20});
  Finished run = folder.Run({"--timeline=timeline.json"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(
      run.Says("--timeline shows what several workers do, and there are none: add --workers=N or "
               "--coordinate=ENDPOINT; for one process there is --profile=timeline.json"))
      << run.err;
  run = RunProgram({"train", "--join=ipc://nobody", "--timeline=timeline.json"}, folder.setting());
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("--timeline does not go with --join: give it to the coordinator")) << run.err;
  run = folder.Run({"--workers=2", "--timeline="});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("--timeline needs a value")) << run.err;
  run = folder.Run({"--workers=2", "--timeline=no/such/folder.json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(run.Says("no/such/folder.json: cannot be written: No such file or directory")) << run.err;
  EXPECT_FALSE(fs::exists(folder / "timeline.json"));
  EXPECT_EQ(folder.NewestState(), -1) << "nothing was trained";
  if (!fs::exists("/dev/full")) return;
  run = folder.Run({"--workers=2", "--timeline=/dev/full"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(run.Says("the timeline is not complete: /dev/full: No space left on device")) << run.err;
  EXPECT_EQ(folder.NewestState(), 20) << "training went on";
}

TEST(ClusterSummary, WarnsWhereNothingWasAveraged) {
  for (const bool expected : {true, false}) {
    const ClusterFolder folder("local_steps: 5 min_workers: 1 join_timeout_ms: 4000", {.max_iter = 40, .snapshot = 0});
    std::string endpoint;
    const auto coordinator = folder.Coordinate(expected ? 2 : 1, &endpoint);
    const auto worker = folder.Join(endpoint, "alone");
    const Finished run = coordinator->Wait();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(worker->Wait().exit_code, 0);
    EXPECT_EQ(run.Says("Warning: no round averaged more than one worker's results, though 2 workers were expected"),
              expected)
        << run.err;
    EXPECT_EQ(run.Says("There were never two at a time"), expected) << run.err;
  }
}

TEST(ClusterSummary, CountsWorkersThatLeft) {
  const ClusterFolder folder("local_steps: 5 history: MEAN min_workers: 1", {.max_iter = 100000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  ASSERT_TRUE(coordinator->WaitFor("Iteration 20, lr")) << coordinator->Err();
  const Finished status = folder.Ask("status", endpoint);
  EXPECT_TRUE(
      Matches(status.out, R"(\ntopology STAR, [\d.]+ rounds a minute; the last of 2 workers, through the coordi)"))
      << status.out;
  EXPECT_TRUE(Matches(status.out, R"(\n +[01] +one +(training|waiting) +(\d+|-) +\d+ +[\d.]+ +\d+% +\d+% )"))
      << status.out;
  one->Signal(SIGINT);
  one->Wait();
  ASSERT_TRUE(coordinator->WaitFor(" left: stopped (1 workers)")) << coordinator->Err();
  coordinator->Signal(SIGINT);
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  two->Wait();
  EXPECT_TRUE(Matches(run.err, R"(\]     +[01] +one .* left\n)")) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(\]     +[01] +two .*[\d]\n)")) << run.err;
  EXPECT_FALSE(run.Says("no round averaged")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
