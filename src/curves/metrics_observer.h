// Records the course of a training in a file as it goes, and draws it.
#ifndef CREMA_CURVES_METRICS_OBSERVER_H_
#define CREMA_CURVES_METRICS_OBSERVER_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "crema/observer.h"
#include "curves/event_folder.h"

namespace crema {

struct MetricsOptions {
  // The file of records; empty: <snapshot_prefix>_metrics.jsonl of a run that writes snapshots; of others one beside
  // `curves`, or none.
  std::string path;
  // A picture (.svg, .html) that is drawn anew while training goes on, or a folder (/) to which events for TensorBoard
  // are added; empty: none.
  std::string curves;
  // Told once that the file cannot be written: training goes on without.
  std::function<void(const std::string& message)> warn;
};

// Appends JSON lines (https://jsonlines.org), each an object with "event", and where they are known "iteration" and
// "seconds" since training started or was resumed:
//   start    net, solver, type, lr_policy, iteration, max_iter, seed, time (UTC, ISO 8601)
//   train    loss: mean of the last "iterations" iterations, a thousandth of max_iter or all since the last record
//   display  lr, outputs and loss_weights of the train net at this iteration
//   sizes    tops and parameters: an object from layer to an object from name to [value, gradient], with debug_info
//   test     net, outputs, loss_weights, and with test_compute_loss loss
//   best     output, value
//   snapshot model, state
//   end      stopped_early
// Outputs are an object from name to number, or to an array where an output has several. loss_weights names those that
// are losses, also with loss_weight 0. Numbers that are not finite are null. A resumed run appends to what is there:
// records behind its start's iteration count no more. Nothing is ever removed from the file. Where it is removed or
// renamed, a new one begins under the name, with a start that has the present iteration. A drawing that takes long is
// made beside training.
class MetricsObserver : public Observer {
 public:
  // Throws EnvironmentError where a path that was given cannot be written, UserError where `curves` has another ending.
  explicit MetricsObserver(MetricsOptions options);
  ~MetricsObserver() override;

  void OnStart(const TrainingStart& start) override;
  void OnIteration(const IterationEnd& end) override;
  void OnDisplay(const Display& display) override;
  void OnMeanSizes(const MeanSizes& sizes) override;
  void OnTest(const TestResult& result) override;
  void OnBest(const BestFound& best) override;
  void OnSnapshot(const SnapshotWritten& snapshot) override;
  void OnEnd(const TrainingEnd& end) override;

  // Where records go; empty before OnStart, and where none are written.
  const std::string& path() const { return path_; }

 private:
  class Record;

  void Open(const std::string& path);
  // Where path_ is another file by now, or none: goes on there.
  void FollowPath();
  void Write(const std::string& line);
  void Append(const std::string& line);
  void WriteStart();
  void WriteLoss();
  void Warn(const std::string& message);  // once
  double DrawingTakes();                  // seconds, as far as is known
  void Draw(bool last);
  void DrawNow(bool last, const std::stop_token& stop = {});
  void EndDrawing();  // that runs beside training, done or not
  void ReportDrawing();
  double Seconds() const;

  MetricsOptions options_;
  std::optional<EventFolder> events_;
  std::string path_, absolute_;  // also where the working directory is another one by then
  int fd_ = -1;
  bool made_ = false, warned_ = false, started_ = false, ended_ = false;
  TrainingStart start_;
  int stride_ = 1;  // iterations of a "train" record
  double loss_sum_ = 0;
  int losses_ = 0, last_ = 0;  // in it, of which the last one is of this iteration
  int64_t records_ = 0;        // behind the start
  double started_at_ = 0;      // seconds of a steady clock
  // Of drawings; while drawer_ runs all but drawn_ are its own.
  std::jthread drawer_;
  std::atomic<bool> drawn_ = false;
  double drawn_at_ = 0, drawing_ = 0;  // seconds of that clock; that drawing took
  std::string drawing_failure_;
};

}  // namespace crema

#endif  // CREMA_CURVES_METRICS_OBSERVER_H_
