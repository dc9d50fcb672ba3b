#include "curves/metrics_observer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <exception>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/paths.h"
#include "base/stopwatch.h"
#include "base/write_all.h"
#include "crema/error.h"
#include "curves/curve_writers.h"
#include "curves/training_run.h"
#include "report/json_writer.h"

namespace crema {

namespace {

constexpr int kMostTrainRecords = 1000;  // of a run
constexpr double kDrawEvery = 2;         // seconds
constexpr double kDrawingShare = 0.01;   // of the time that training takes
constexpr double kShortDrawing = 0.1;    // seconds: training waits for it
constexpr double kLongDrawing = 5;       // seconds: who asked training to stop does not wait for it
constexpr double kReadRate = 5e6;        // bytes a second, until a drawing has told

std::string UtcTime() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// Whether the last line has its end: a program that was killed may have left half of one.
bool EndsWithLine(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return true;
  char last = 0;
  return pread(fd, &last, 1, info.st_size - 1) != 1 || last == '\n';
}

}  // namespace

// One line.
class MetricsObserver::Record {
 public:
  explicit Record(const char* event) {
    json_.BeginObject();
    Field("event", event);
  }

  void Field(const char* key, const auto& value) { json_.Field(key, value); }
  void Float(const char* key, float value) {
    json_.Key(key);
    json_.Float(value);
  }
  void Seconds(double value) {
    json_.Key("seconds");
    json_.Thousandths(std::llround(value * 1000));
  }

  void Outputs(const std::vector<OutputValue>& outputs) {
    std::vector<std::string> names;  // in the net's order
    std::map<std::string, std::vector<float>> values;
    std::map<std::string, float> weights;
    for (const OutputValue& output : outputs) {
      if (values[output.name].empty()) names.push_back(output.name);
      values[output.name].push_back(output.value);
      if (output.is_loss) weights[output.name] = output.loss_weight;
    }
    json_.Key("outputs");
    json_.BeginObject();
    for (const std::string& name : names) {
      json_.Key(name);
      if (values[name].size() > 1) json_.BeginArray();
      for (const float value : values[name]) json_.Float(value);
      if (values[name].size() > 1) json_.EndArray();
    }
    json_.EndObject();
    json_.Key("loss_weights");
    json_.BeginObject();
    for (const auto& [name, weight] : weights) Float(name.c_str(), weight);
    json_.EndObject();
  }

  void Sizes(const char* key, const std::vector<MeanSizes::Row>& rows) {
    json_.Key(key);
    json_.BeginObject();
    const std::string* layer = nullptr;
    for (const MeanSizes::Row& row : rows) {
      if (!layer || *layer != row.layer) {
        if (layer) json_.EndObject();
        json_.Key(row.layer);
        json_.BeginObject();
        layer = &row.layer;
      }
      json_.Key(row.name);
      json_.BeginArray();
      json_.Float(row.value);
      if (row.gradient) json_.Float(*row.gradient);
      json_.EndArray();
    }
    if (layer) json_.EndObject();
    json_.EndObject();
  }

  std::string Line() {
    json_.EndObject();
    return json_.text() + "\n";
  }

 private:
  JsonWriter json_;
};

MetricsObserver::MetricsObserver(MetricsOptions options) : options_(std::move(options)) {
  if (!options_.path.empty()) Open(options_.path);
  if (options_.curves.empty()) return;
  CheckCurveFile(options_.curves, false);
  if (IsEventFolder(options_.curves)) {
    events_.emplace(options_.curves);
    return;
  }
  // What is there stays there until there is something to draw.
  if (access(options_.curves.c_str(), F_OK) == 0 ? access(options_.curves.c_str(), W_OK) != 0
                                                 : access(DirectoryOf(options_.curves).c_str(), W_OK | X_OK) != 0) {
    throw EnvironmentError(options_.curves + ": cannot be written: " + WriteFailure(errno));
  }
}

MetricsObserver::~MetricsObserver() {
  EndDrawing();
  if (made_ && !started_) unlink(path_.c_str());  // training did not begin
  if (started_ && !ended_) Draw(true);            // it failed: the last picture reloads itself no more
  if (fd_ >= 0) close(fd_);
}

void MetricsObserver::Open(const std::string& path) {
  path_ = path;
  std::error_code ignored;
  if (absolute_.empty()) absolute_ = std::filesystem::absolute(path, ignored).string();
  made_ = access(path.c_str(), F_OK) != 0;
  fd_ = open(absolute_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw EnvironmentError(path + ": cannot be written: " + WriteFailure(errno));
  struct stat info = {};
  const bool regular = fstat(fd_, &info) != 0 || S_ISREG(info.st_mode);
  if (regular && flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(std::exchange(fd_, -1));
    throw EnvironmentError(path + ": another run is writing it; give this one a file of its own with --metrics");
  }
  // Lines that a pipe has no room for are lost, as on a full disk; training does not wait for its reader.
  if (!regular) fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  if (!options_.curves.empty() && !regular) {
    throw UserError(Location{path, 0, 0},
                    "is no regular file, and curves are drawn from what is read from it again; give "
                    "a file, or leave out --curves");
  }
}

void MetricsObserver::FollowPath() {
  struct stat held = {};
  if (fstat(fd_, &held) != 0 || !S_ISREG(held.st_mode)) return;
  const auto is_held = [&held](const std::string& path) {
    struct stat named = {};
    return stat(path.c_str(), &named) == 0 && named.st_dev == held.st_dev && named.st_ino == held.st_ino;
  };
  if (is_held(path_) || is_held(absolute_)) return;  // path_: also where the working directory was renamed
  const int old = std::exchange(fd_, -1);
  try {
    Open(path_);
  } catch (const std::exception& error) {
    if (fd_ >= 0) close(fd_);  // what is there now is of another kind
    fd_ = old;
    Warn(error.what());
    return;
  }
  close(old);
  start_.iteration = std::max(start_.iteration, last_);
  WriteStart();
}

void MetricsObserver::Warn(const std::string& message) {
  if (!std::exchange(warned_, true) && options_.warn) options_.warn(message);
}

void MetricsObserver::Write(const std::string& line) {
  if (fd_ < 0) return;
  if (started_) FollowPath();
  Append(line);
}

void MetricsObserver::Append(const std::string& line) {
  // In one piece, so that a reader sees whole lines, and a failure leaves at most one that is not.
  const std::string text = (EndsWithLine(fd_) ? "" : "\n") + line;
  const bool written = WriteAll(fd_, text.data(), text.size());
  if (written && started_) ++records_;
  if (written) return;
  Warn(path_ + ": cannot be written: " + WriteFailure(errno) + "; training goes on, and its curves may have gaps");
}

double MetricsObserver::Seconds() const { return SteadySeconds() - started_at_; }

void MetricsObserver::OnStart(const TrainingStart& start) {
  started_at_ = SteadySeconds();
  const std::string beside = options_.curves.substr(0, options_.curves.rfind(events_ ? '/' : '.'));
  const std::string stem = start.snapshot_prefix.empty() ? beside : start.snapshot_prefix;
  if (path_.empty() && !stem.empty()) {
    try {
      Open(stem + "_metrics.jsonl");
    } catch (const EnvironmentError& error) {
      path_.clear();
      if (options_.warn) options_.warn(error.what());
    }
  }
  if (fd_ < 0) return;
  started_ = true;
  stride_ = (std::max(1, start.max_iter) - 1) / kMostTrainRecords + 1;
  start_ = start;
  last_ = start.iteration - 1;
  WriteStart();
  records_ = 0;
}

void MetricsObserver::WriteStart() {
  Record record("start");
  record.Field("time", UtcTime());
  record.Field("net", start_.net);
  record.Field("solver", start_.solver);
  record.Field("type", start_.solver_type);
  record.Field("lr_policy", start_.lr_policy);
  record.Field("iteration", start_.iteration);
  record.Field("max_iter", start_.max_iter);
  record.Field("seed", std::to_string(start_.seed));
  Append(record.Line());
}

void MetricsObserver::OnIteration(const IterationEnd& end) {
  loss_sum_ += end.loss;
  ++losses_;
  last_ = end.iteration;
  if ((end.iteration + 1) % stride_ != 0) return;
  WriteLoss();
  Draw(false);
}

void MetricsObserver::WriteLoss() {
  if (losses_ == 0) return;
  Record record("train");
  record.Field("iteration", last_);
  record.Seconds(Seconds());
  record.Field("iterations", losses_);
  record.Float("loss", static_cast<float>(loss_sum_ / losses_));
  Write(record.Line());
  loss_sum_ = 0;
  losses_ = 0;
}

void MetricsObserver::OnDisplay(const Display& display) {
  if (display.final) return;
  Record record("display");
  record.Field("iteration", display.iteration);
  record.Seconds(Seconds());
  record.Float("lr", display.learning_rate);
  record.Outputs(display.outputs);
  Write(record.Line());
  Draw(false);
}

void MetricsObserver::OnMeanSizes(const MeanSizes& sizes) {
  Record record("sizes");
  record.Field("iteration", sizes.iteration);
  record.Sizes("tops", sizes.tops);
  record.Sizes("parameters", sizes.parameters);
  Write(record.Line());
}

void MetricsObserver::OnTest(const TestResult& result) {
  Record record("test");
  record.Field("iteration", result.iteration);
  record.Seconds(Seconds());
  record.Field("net", result.net);
  if (result.loss) record.Float("loss", *result.loss);
  record.Outputs(result.outputs);
  Write(record.Line());
  Draw(false);
}

void MetricsObserver::OnBest(const BestFound& best) {
  Record record("best");
  record.Field("iteration", best.iteration);
  record.Field("output", best.output);
  record.Float("value", best.value);
  Write(record.Line());
}

void MetricsObserver::OnSnapshot(const SnapshotWritten& snapshot) {
  Record record("snapshot");
  record.Field("iteration", snapshot.iteration);
  record.Field("model", snapshot.model_path);
  record.Field("state", snapshot.state_path);
  Write(record.Line());
}

void MetricsObserver::OnEnd(const TrainingEnd& end) {
  ended_ = true;
  WriteLoss();
  Record record("end");
  record.Field("iteration", end.iteration);
  record.Seconds(Seconds());
  record.Field("stopped_early", end.stopped_early ? 1 : 0);
  Write(record.Line());
  if (end.stopped_early && DrawingTakes() > kLongDrawing) {
    drawer_.request_stop();
    Warn(options_.curves + ": the end of this run is not drawn, as that takes long; crema curves does it");
    return;
  }
  Draw(true);
}

double MetricsObserver::DrawingTakes() {
  if (options_.curves.empty() || fd_ < 0) return 0;
  if (drawer_.joinable() && !drawn_) return kLongDrawing * 2;
  struct stat info = {};
  if (drawing_ > 0 || fstat(fd_, &info) != 0) return drawing_;
  return static_cast<double>(info.st_size) / kReadRate;
}

void MetricsObserver::Draw(bool last) {
  if (options_.curves.empty() || fd_ < 0 || records_ == 0) return;
  if (drawer_.joinable()) {
    if (!last && !drawn_) return;
    EndDrawing();
  }
  if (!last && SteadySeconds() - drawn_at_ < std::max(kDrawEvery, drawing_ / kDrawingShare)) return;
  if (last || DrawingTakes() <= kShortDrawing) {
    DrawNow(last);
    ReportDrawing();
    return;
  }
  drawn_ = false;
  drawer_ = std::jthread([this](const std::stop_token& stop) {
    DrawNow(false, stop);
    drawn_ = true;
  });
}

void MetricsObserver::EndDrawing() {
  if (!drawer_.joinable()) return;
  drawer_.request_stop();
  drawer_.join();
  ReportDrawing();
}

void MetricsObserver::DrawNow(bool last, const std::stop_token& stop) {
  const double now = SteadySeconds();
  try {
    CurveOptions drawing;
    drawing.reload = !last;
    const TrainingRun run = ReadTrainingRun(path_, nullptr, stop);
    events_ ? events_->Write({run}) : WriteCurves({run}, drawing, options_.curves);
  } catch (const std::exception& error) {
    if (!stop.stop_requested()) drawing_failure_ = error.what();
  }
  drawn_at_ = SteadySeconds();
  drawing_ = drawn_at_ - now;
}

void MetricsObserver::ReportDrawing() {
  if (!drawing_failure_.empty()) Warn("no curves are drawn: " + std::exchange(drawing_failure_, {}));
}

}  // namespace crema
