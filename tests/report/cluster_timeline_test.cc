// Timelines of trainings on several machines, and the table at their end.
#include "report/cluster_timeline.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "crema/error.h"
#include "files.h"
#include "report/cluster_summary.h"
#include "report/json_reader.h"
#include "report/log_observer.h"
#include "temporary_folder.h"

namespace crema {
namespace {

using testing_json::Json;
using testing_json::ParseJson;

class Timeline : public ::testing::Test {
 protected:
  Timeline() { Open(ClusterTimeline::kMostEvents); }

  void Open(int64_t most) {
    timeline_ = std::make_unique<ClusterTimeline>(path_, most);
    timeline_->OnStart({});
    base_ = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
                .count() +
            10;
  }

  // Trained from `begin` to `end` milliseconds, and its values came `sent` later.
  WorkerInRound Worker(uint32_t place, int64_t begin, int64_t end, int64_t sent) const {
    WorkerInRound worker;
    worker.member = place + 1;
    worker.place = place;
    worker.name = "node" + std::to_string(place);
    worker.began = base_ + begin;
    worker.trained = base_ + end;
    worker.train_seconds = static_cast<double>(end - begin) / 1000;
    worker.delivered = base_ + end + sent;
    worker.examples = 80;
    worker.bytes_sent = 1000;
    worker.bytes_received = 2000;
    return worker;
  }

  RoundCommitted Round(uint64_t version, int64_t opened, int64_t closed, std::vector<WorkerInRound> workers) const {
    RoundCommitted round;
    round.version = version;
    round.steps = 5;
    round.iteration = static_cast<int>(version - 1) * 5;
    for (const WorkerInRound& worker : workers) round.workers += !worker.late && !worker.dropped;
    round.examples = 160;
    round.loss = 0.5f;
    round.opened = base_ + opened;
    round.closed = base_ + closed;
    round.averaging_seconds = 0.002;
    round.journal_seconds = 0.001;
    round.by_worker = std::move(workers);
    return round;
  }

  Json Finish() {
    timeline_.reset();
    return ParseJson(ReadFile(path_));
  }

  static int TrackOf(const Json& trace, const std::string& name) {
    int track = -1;
    for (const Json& event : trace.items) {
      if (event["name"].string == "thread_name" && event["args"]["name"].string == name) {
        track = static_cast<int>(event["tid"].number);
      }
    }
    EXPECT_NE(track, -1) << name;
    return track;
  }

  // "name begin-end" of a track's spans, in milliseconds from base_.
  std::vector<std::string> SpansOf(const Json& trace, const std::string& track_name) const {
    const int track = TrackOf(trace, track_name);
    double first = -1;
    for (const Json& event : trace.items) {
      if (event["ph"].string == "X" && (first < 0 || event["ts"].number < first)) first = event["ts"].number;
    }
    std::vector<std::string> spans;
    for (const Json& event : trace.items) {
      if (event["ph"].string != "X" || event["tid"].number != track) continue;
      const double begin = (event["ts"].number - first) / 1000;
      std::ostringstream text;
      text << event["name"].string << " " << begin << "-" << begin + event["dur"].number / 1000;
      spans.push_back(text.str());
    }
    return spans;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "timeline.json";
  std::unique_ptr<ClusterTimeline> timeline_;
  int64_t base_ = 0;
};

using Spans = std::vector<std::string>;

TEST_F(Timeline, ShowsWhatEachWorkerWasAt) {
  timeline_->OnRound(Round(1, 0, 100, {Worker(0, 0, 60, 10), Worker(1, 0, 95, 5)}));
  WorkerInRound one = Worker(0, 110, 160, 10), two = Worker(1, 110, 180, 10);
  one.parameters_sent = two.parameters_sent = base_ + 100;  // while the average is made, as far as is known
  one.parameters_received = base_ + 112;
  timeline_->OnRound(Round(2, 100, 190, {one, two}));
  const Json trace = Finish();
  EXPECT_EQ(SpansOf(trace, "place 0: node0"),
            (Spans{"training 1 0-60", "sending 1 60-70", "waiting for others 70-100", "parameters 103-112",
                   "training 2 112-160", "sending 2 160-170", "waiting for others 170-190"}));
  EXPECT_EQ(SpansOf(trace, "place 1: node1"),
            (Spans{"training 1 0-95", "sending 1 95-100", "training 2 110-180", "sending 2 180-190"}));
  EXPECT_EQ(SpansOf(trace, "coordinator: rounds"), (Spans{"round 1 0-103", "averaging 100-102", "journal 102-103",
                                                          "round 2 103-193", "averaging 190-192", "journal 192-193"}));
  for (const Json& event : trace.items) {
    if (event["name"].string != "training 2" || event["tid"].number != TrackOf(trace, "place 0: node0")) continue;
    const Json& args = event["args"];
    EXPECT_EQ(args["worker"].string, "node0");
    EXPECT_EQ(args["round"].number, 2);
    EXPECT_EQ(args["examples"].number, 80);
    EXPECT_EQ(args["examples/s"].number, 1600);
    EXPECT_EQ(args["bytes sent"].number, 1000);
    EXPECT_EQ(args["bytes received"].number, 2000);
    EXPECT_EQ(args["staleness"].number, 0);
  }
}

TEST_F(Timeline, RoundsAmongWorkersHaveExchanges) {
  std::vector<WorkerInRound> workers = {Worker(0, 0, 60, 50), Worker(1, 0, 90, 10)};
  for (WorkerInRound& worker : workers) worker.exchange = base_ + 91;
  RoundCommitted round = Round(1, 0, 112, workers);
  round.among_workers = true;
  round.averaging_seconds = 0;
  timeline_->OnRound(round);
  const Json trace = Finish();
  EXPECT_EQ(SpansOf(trace, "place 0: node0"), (Spans{"training 1 0-60", "waiting for others 60-91",
                                                     "exchanging 1 91-110", "waiting for others 110-112"}));
  EXPECT_EQ(SpansOf(trace, "coordinator: rounds"), (Spans{"round 1 0-113", "journal 112-113"}));
}

TEST_F(Timeline, LateWorkersAndThoseThatAreDropped) {
  WorkerInRound late = Worker(1, 0, 0, 0), dropped = Worker(2, 0, 50, 0);
  late.late = true;
  dropped.dropped = true;
  timeline_->OnRound(Round(1, 0, 100, {Worker(0, 0, 90, 0), late, dropped}));
  late = Worker(1, 0, 150, 10);  // it trained all the time
  late.staleness = 1;
  timeline_->OnRound(Round(2, 103, 200, {late}));
  const Json trace = Finish();
  EXPECT_EQ(SpansOf(trace, "place 1: node1"), (Spans{"late for round 1 0-100", "training 2 100-150"}));
  EXPECT_EQ(SpansOf(trace, "place 1: values under way"), (Spans{"sending 2 150-160", "waiting for others 160-200"}));
  EXPECT_EQ(SpansOf(trace, "place 2: node2"), (Spans{"dropped from round 1 0-100"}));
}

TEST_F(Timeline, ValuesTravelInATrackOfTheirOwnWhileAWorkerTrainsAhead) {
  WorkerInRound worker = Worker(0, 0, 50, 40);
  worker.trains_ahead = true;
  timeline_->OnRound(Round(1, 0, 100, {worker}));
  worker = Worker(0, 50, 120, 0);
  worker.staleness = 1;
  timeline_->OnRound(Round(2, 103, 121, {worker}));
  const Json trace = Finish();
  EXPECT_EQ(SpansOf(trace, "place 0: node0"), (Spans{"training 1 0-50", "training 2 50-120"}));
  EXPECT_EQ(SpansOf(trace, "place 0: values under way"),
            (Spans{"sending 1 50-90", "waiting for others 90-100", "waiting for others 120-121"}));
}

// With overlap: BACKWARD.
TEST_F(Timeline, AnExchangeThatBeginsInTheStepIsBesideIt) {
  WorkerInRound worker = Worker(0, 0, 50, 5);
  worker.exchange = base_ + 2;
  RoundCommitted round = Round(1, 0, 100, {worker});
  round.among_workers = true;
  timeline_->OnRound(round);
  const Json trace = Finish();
  EXPECT_EQ(SpansOf(trace, "place 0: node0"), (Spans{"training 1 0-50"}));
  EXPECT_EQ(SpansOf(trace, "place 0: values under way"), (Spans{"exchanging 1 2-55", "waiting for others 55-100"}));
}

TEST_F(Timeline, TestsSnapshotsAndWhoCameAreThere) {
  timeline_->OnCluster({"worker \"a\" joined", 1, false});
  timeline_->OnTestStart({});
  TestResult test;
  test.outputs = {{.name = "accuracy", .value = 0.5f}};
  timeline_->OnTest(test);
  SnapshotWritten written;
  written.bytes = 77;
  written.seconds = 0.0001;
  timeline_->OnSnapshot(written);
  // The same place, another worker.
  timeline_->OnRound(Round(1, 0, 10, {Worker(0, 0, 9, 0)}));
  WorkerInRound other = Worker(0, 10, 19, 0);
  other.name = "other";
  timeline_->OnRound(Round(2, 10, 20, {other}));
  const Json trace = Finish();
  TrackOf(trace, "place 0: node0, other");
  bool joined = false, tested = false, snapshot = false;
  for (const Json& event : trace.items) {
    joined |= event["name"].string == "worker \"a\" joined" && event["ph"].string == "i";
    tested |= event["name"].string == "test net #0" && event["args"]["#0 accuracy"].number == 0.5;
    snapshot |= event["name"].string == "snapshot" && event["args"]["bytes"].number == 77;
  }
  EXPECT_TRUE(joined && tested && snapshot);
}

// A process that is killed leaves an array without its end, which viewers accept.
TEST_F(Timeline, IsInTheFileWhileTrainingGoesOn) {
  timeline_->OnRound(Round(1, 0, 10, {Worker(0, 0, 9, 0)}));
  timeline_->OnClusterEnd({});
  const std::string text = ReadFile(path_);
  EXPECT_THROW(ParseJson(text), std::runtime_error);
  const Json trace = ParseJson(text + "]");
  EXPECT_EQ(SpansOf(trace, "place 0: node0"), (Spans{"training 1 0-9", "waiting for others 9-10"}));
  timeline_->OnRound(Round(2, 10, 20, {Worker(0, 10, 19, 0)}));
  EXPECT_EQ(SpansOf(Finish(), "place 0: node0").size(), 4u);
}

TEST_F(Timeline, HasABound) {
  Open(20);
  for (uint64_t i = 0; i < 1000; ++i) {
    timeline_->OnRound(Round(i + 1, 10 * static_cast<int64_t>(i), 10 * static_cast<int64_t>(i) + 10,
                             {Worker(0, 10 * static_cast<int64_t>(i), 10 * static_cast<int64_t>(i) + 9, 0)}));
    timeline_->OnCluster({"somebody came", 1, false});
  }
  EXPECT_TRUE(timeline_->full());
  EXPECT_EQ(timeline_->error(), "");
  const Json trace = Finish();
  int spans = 0, notes = 0;
  for (const Json& event : trace.items) {
    if (event["ph"].string == "M") continue;
    ++spans;
    notes += event["name"].string.find("the timeline ends here") != std::string::npos;
  }
  EXPECT_EQ(spans, 21);
  EXPECT_EQ(notes, 1);
}

TEST_F(Timeline, AnEarlierOneIsReplacedWhenTrainingStartsAndNotBefore) {
  timeline_->OnRound(Round(1, 0, 10, {Worker(0, 0, 9, 0)}));
  Finish();
  const std::string before = ReadFile(path_);
  { const ClusterTimeline never_started(path_); }
  EXPECT_EQ(ReadFile(path_), before);
  { const ClusterTimeline never_started(folder_ / "new.json"); }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new.json"));
  Open(100);
  EXPECT_LT(Finish().items.size(), ParseJson(before).items.size());
}

TEST_F(Timeline, SaysWhatHindersIt) {
  EXPECT_THROW(ClusterTimeline(folder_ / "no/such/folder.json"), EnvironmentError);
  EXPECT_THROW(ClusterTimeline{folder_.path()}, EnvironmentError);
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  ClusterTimeline full("/dev/full");
  full.OnStart({});
  full.OnRound(Round(1, 0, 10, {Worker(0, 0, 9, 0)}));
  full.OnEnd({});
  EXPECT_NE(full.error().find("/dev/full: No space left"), std::string::npos) << full.error();
}

TEST_F(Timeline, WaitsForNoReaderOfAPipe) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(ClusterTimeline{pipe}, EnvironmentError);
}

TEST_F(Timeline, ATournamentsWorkersSayWhomTheyMet) {
  std::vector<WorkerInRound> workers;
  for (uint32_t place = 0; place < 4; ++place) {
    workers.push_back(Worker(place, 0, 10, 1));
    workers.back().score = 0.25 * place;
  }
  workers[0].met = "node1";
  workers[0].lost = true;
  workers[1].met = "node0";
  workers[1].won = true;
  workers[2].met = "nodeX";
  timeline_->OnRound(Round(1, 0, 12, workers));
  const Json trace = Finish();
  std::vector<std::string> told;
  for (const Json& event : trace.items) {
    if (event["name"].string != "training 1") continue;
    const Json& arguments = event["args"];
    told.push_back(std::to_string(arguments["score"].number).substr(0, 4) + " " + arguments["met"].string);
    if (arguments["met"].string != "nobody") told.back() += ", won by " + arguments["won by"].string;
  }
  EXPECT_EQ(told, (std::vector<std::string>{"0.00 node1, won by node1", "0.25 node0, won by node1",
                                            "0.50 nodeX, won by nobody: both are as good", "0.75 nobody"}));
}

ClusterSummary Summary() {
  ClusterSummary summary;
  summary.workers.push_back({.place = 0,
                             .name = "a-machine-with-a-long-name:4711",
                             .examples = 123456,
                             .rounds = 100,
                             .rounds_late = 3,
                             .seconds = 100,
                             .trained = 80,
                             .waited = 12.5,
                             .communicated = 5,
                             .bytes_sent = 12'300'000,
                             .bytes_received = 4'500'000});
  summary.workers.push_back({.place = 1, .name = "b", .left = true});
  return summary;
}

TEST(ClusterSummary, IsANarrowTable) {
  const std::vector<std::string> lines = SummaryLines(Summary());
  ASSERT_EQ(lines.size(), 4u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 110u) << line;
  EXPECT_EQ(lines[2],
            "    0  a-machi~ame:4711    123456      1234.6    80.0   12.5    5.0    12.3    4.5     100     3");
  EXPECT_EQ(lines[3],
            "    1  b                        0         0.0     0.0    0.0    0.0     0.0    0.0       0     0  left");
  EXPECT_EQ(lines[0].size(), lines[2].size());
}

TEST(ClusterSummary, OfATournamentHasScores) {
  ClusterSummary summary = Summary();
  summary.workers[0].score = -0.0123456;
  summary.workers[0].rounds_met = 9999;
  summary.workers[0].rounds_won = 4321;
  const std::vector<std::string> lines = SummaryLines(summary);
  ASSERT_EQ(lines.size(), 4u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 110u) << line;
  EXPECT_EQ(lines[0].size(), lines[2].size());
  EXPECT_EQ(lines[0].substr(lines[0].size() - 19), "   score        won");
  EXPECT_EQ(lines[2].substr(lines[2].size() - 19), "-0.01235  4321/9999");
  EXPECT_EQ(lines[3].substr(lines[3].size() - 25), "       -        0/0  left") << "it left before its first round";
}

TEST(ClusterSummary, IsLogged) {
  std::vector<std::string> lines;
  const auto write = [&](bool, const std::string& line) { lines.push_back(line); };
  LogObserver log(write, write);
  ClusterSummary summary = Summary();
  log.OnClusterEnd(summary);
  EXPECT_EQ(lines.size(), 5u);
  summary.warning = "no round averaged";
  log.OnClusterEnd(summary);
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines.back(), "Warning: no round averaged");
}

}  // namespace
}  // namespace crema
