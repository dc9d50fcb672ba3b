#include "report/cluster_timeline.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/atomic_file.h"
#include "base/listed.h"
#include "base/write_all.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr int kRounds = 1, kTests = 2, kFirstWorker = 10;  // tracks; of each place two
constexpr int64_t kFlushEvery = 1'000'000'000;
constexpr int64_t kShown = 1'000;  // what each round has is there, however short it was
constexpr size_t kMostNames = 4;   // of a place

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t NanosecondsOf(double seconds) { return static_cast<int64_t>(std::max(0.0, seconds) * 1e9); }

int TrackOf(uint32_t place) { return kFirstWorker + 2 * static_cast<int>(place); }

}  // namespace

ClusterTimeline::ClusterTimeline(std::string path, int64_t most_events)
    : path_(std::move(path)), most_events_(most_events), origin_(SteadyNanoseconds()) {
  struct stat there = {};
  made_ = stat(path_.c_str(), &there) != 0;
  if (!made_ && S_ISFIFO(there.st_mode)) {
    throw EnvironmentError(path_ + ": is a pipe, and training would wait for its reader; give the name of a file");
  }
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw EnvironmentError(path_ + ": cannot be written: " + WriteFailure(errno));
}

ClusterTimeline::~ClusterTimeline() {
  // Training did not begin: what is in an earlier file stays there.
  if (!started_ && made_) unlink(path_.c_str());
  Finish();
}

void ClusterTimeline::OnStart(const TrainingStart& start) {
  struct stat info = {};
  if (fstat(fd_, &info) == 0 && S_ISREG(info.st_mode) && ftruncate(fd_, 0) != 0) {
    error_ = path_ + ": " + std::strerror(errno);
    return Close();
  }
  started_ = true;
  writer_.Name("process_name", kRounds, "crema: " + start.net);
  writer_.Name("thread_name", kRounds, "coordinator: rounds");
  writer_.SortIndex(kRounds, kRounds);
  Flush();
}

int64_t ClusterTimeline::Now() const { return SteadyNanoseconds() - origin_; }

int64_t ClusterTimeline::FromMilliseconds(int64_t time) const {
  return std::max<int64_t>(0, time * 1'000'000 - origin_);
}

bool ClusterTimeline::MayAdd() {
  if (fd_ < 0 || !started_ || full_) return false;
  if (events_ < most_events_) {
    ++events_;
    return true;
  }
  full_ = true;
  writer_.Instant("the timeline ends here, training goes on: this file holds its most events", "note", kRounds,
                  std::max(round_end_, ends_[kRounds]));
  return false;
}

void ClusterTimeline::Add(const std::string& name, const std::string& category, int track, int64_t begin, int64_t end,
                          const std::function<void(JsonWriter&)>& arguments) {
  int64_t& filled = ends_[track];
  begin = std::max(begin, filled);
  if (category == "round" || category == "training" || category == "exchanging" || category == "late") {
    end = std::max(end, begin + kShown);
  }
  if (end <= begin || !MayAdd()) return;
  filled = end;
  writer_.Span(name, category, track, begin, end, arguments);
}

void ClusterTimeline::OnRound(const RoundCommitted& round) {
  // Averaging and the journal take the state machine no time, which sends and opens at the same moment.
  const int64_t closed = FromMilliseconds(round.closed);
  const int64_t averaged = closed + NanosecondsOf(round.averaging_seconds);
  const int64_t end = averaged + NanosecondsOf(round.journal_seconds);
  for (const WorkerInRound& worker : round.by_worker) AddWorker(round, worker);
  const int64_t before = std::max(round_end_, ends_[kRounds]);
  const int64_t begin = std::max(FromMilliseconds(round.opened), before);
  Add("round " + std::to_string(round.version), "round", kRounds, begin, end, [&round](JsonWriter& json) {
    json.Field("iteration", round.iteration);
    json.Field("steps", round.steps);
    json.Field("workers", round.workers);
    json.Field("late", std::count_if(round.by_worker.begin(), round.by_worker.end(),
                                     [](const WorkerInRound& worker) { return worker.late; }));
    json.Field("examples", round.examples);
    json.Field("loss", round.loss);
    json.Field("values went", round.among_workers ? "among workers" : "through the coordinator");
  });
  // Within it.
  for (const auto& [name, from, to] : {std::tuple("averaging", closed, averaged), {"journal", averaged, end}}) {
    if (to > std::max(from, begin) && MayAdd()) writer_.Span(name, name, kRounds, std::max(from, begin), to);
  }
  round_end_ = std::max(round_end_, end);
  FlushNowAndThen();
}

void ClusterTimeline::AddWorker(const RoundCommitted& round, const WorkerInRound& worker) {
  const int track = TrackOf(worker.place);
  const std::string number = std::to_string(round.version);
  const int64_t closed = FromMilliseconds(round.closed);
  // Then it trains while values are under way.
  const bool early = round.among_workers && worker.exchange > 0 && worker.exchange < worker.trained;
  const bool apart = worker.trains_ahead || worker.staleness > 0 || early;
  NameTracks(worker, apart && !worker.late);
  if (worker.late || worker.dropped) {
    return Add((worker.late ? "late for round " : "dropped from round ") + number, worker.late ? "late" : "dropped",
               track, FromMilliseconds(worker.began), closed);
  }
  const int values = track + apart;
  const int64_t trained = FromMilliseconds(worker.trained), delivered = FromMilliseconds(worker.delivered);
  const auto bytes = [&worker](JsonWriter& json) {
    json.Field("bytes sent", worker.bytes_sent);
    json.Field("bytes received", worker.bytes_received);
  };
  if (worker.parameters_received > 0) {
    Add("parameters", "receiving", values, std::max(round_end_, FromMilliseconds(worker.parameters_sent)),
        FromMilliseconds(worker.parameters_received));
  }
  Add("training " + number, "training", track, std::max<int64_t>(0, trained - NanosecondsOf(worker.train_seconds)),
      trained, [&](JsonWriter& json) {
        json.Field("worker", worker.name);
        json.Field("round", round.version);
        json.Field("examples", worker.examples);
        json.Field("examples/s",
                   worker.train_seconds > 0 ? static_cast<double>(worker.examples) / worker.train_seconds : 0);
        json.Field("staleness", worker.staleness);
        bytes(json);
        if (!worker.score) return;
        json.Field("score", *worker.score);
        json.Field("met", worker.met.empty() ? "nobody" : worker.met);
        if (worker.met.empty()) return;
        json.Field("won by", worker.won ? worker.name : worker.lost ? worker.met : "nobody: both are as good");
      });
  if (round.among_workers && worker.exchange > 0) {
    const int64_t exchange = FromMilliseconds(worker.exchange);
    Add("waiting for others", "waiting", values, trained, exchange);
    Add("exchanging " + number, "exchanging", values, exchange, delivered, bytes);
  } else {
    Add("sending " + number, "sending", values, trained, delivered, bytes);
  }
  Add("waiting for others", "waiting", values, std::max(trained, delivered), closed);
}

void ClusterTimeline::NameTracks(const WorkerInRound& worker, bool has_values) {
  Place& place = places_[worker.place];
  const int track = TrackOf(worker.place);
  const std::string number = "place " + std::to_string(worker.place) + ": ";
  if (place.names.size() <= kMostNames &&
      std::find(place.names.begin(), place.names.end(), worker.name) == place.names.end()) {
    if (place.names.empty()) writer_.SortIndex(track, track);
    place.names.push_back(place.names.size() < kMostNames ? worker.name : "...");
    writer_.Name("thread_name", track, number + Listed(place.names));
  }
  if (!has_values || std::exchange(place.has_values, true)) return;
  writer_.Name("thread_name", track + 1, number + "values under way");
  writer_.SortIndex(track + 1, track + 1);
}

void ClusterTimeline::OnCluster(const ClusterChanged& change) {
  if (!MayAdd()) return;
  writer_.Instant(change.text, change.warning ? "warning" : "cluster", kRounds, Now());
  FlushNowAndThen();
}

void ClusterTimeline::OnTestStart(const TestStart&) { test_ = Now(); }

void ClusterTimeline::OnTest(const TestResult& result) {
  if (ends_.count(kTests) == 0) {
    writer_.Name("thread_name", kTests, "coordinator: tests and snapshots");
    writer_.SortIndex(kTests, kTests);
  }
  Add("test net #" + std::to_string(result.net), "test", kTests, test_, Now(), [&result](JsonWriter& json) {
    json.Field("iteration", result.iteration);
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const OutputValue& output = result.outputs[i];
      json.Field("#" + std::to_string(i) + " " + output.name, output.value);
    }
  });
  FlushNowAndThen();
}

void ClusterTimeline::OnSnapshot(const SnapshotWritten& snapshot) {
  const int64_t now = Now();
  if (ends_.count(kTests) == 0) {
    writer_.Name("thread_name", kTests, "coordinator: tests and snapshots");
    writer_.SortIndex(kTests, kTests);
  }
  Add("snapshot", "snapshot", kTests, now - NanosecondsOf(snapshot.seconds), now, [&snapshot](JsonWriter& json) {
    json.Field("iteration", snapshot.iteration);
    json.Field("bytes", snapshot.bytes);
  });
  FlushNowAndThen();
}

void ClusterTimeline::FlushNowAndThen() {
  if (Now() - flushed_ >= kFlushEvery) Flush();
}

void ClusterTimeline::Flush() {
  flushed_ = Now();
  if (started_) Write(writer_.Take());
}

void ClusterTimeline::Write(const std::string& text) {
  if (fd_ < 0 || WriteAll(fd_, text.data(), text.size())) return;
  error_ = path_ + ": " + std::strerror(errno);
  Close();
}

void ClusterTimeline::Finish() {
  if (fd_ < 0) return;
  if (started_) Write(writer_.Finish());
  Close();
}

void ClusterTimeline::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace crema
