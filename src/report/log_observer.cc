#include "report/log_observer.h"

#include <iostream>
#include <sstream>
#include <utility>

#include "base/listed.h"
#include "base/log.h"
#include "base/text_table.h"
#include "report/cluster_summary.h"

namespace crema {

namespace {

// Six significant digits, as Caffe's streams print numbers.
template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

bool IsHdf5(const std::string& path) { return path.ends_with(".h5"); }

void WriteToGlog(bool error, const std::string& line) {
  if (error) {
    LOG(ERROR) << line;
  } else {
    LOG(INFO) << line;
  }
}

void WarnInGlog(bool error, const std::string& line) {
  if (error) {
    LOG(ERROR) << line;
  } else {
    LOG(WARNING) << line;
  }
}

void WriteNotice(bool error, const std::string& line) {
  if (FLAGS_log_dir.empty()) {
    std::cerr << line << "\n";
  } else {
    WarnInGlog(error, line);
  }
}

}  // namespace

std::string LossNote(const OutputValue& output) {
  if (!output.is_loss) return "";
  return Text(" (* ", output.loss_weight, " = ", output.loss_weight * output.value, " loss)");
}

std::vector<std::string> ClassLines(const OutputValue& output) {
  std::vector<std::string> lines;
  for (const ClassPrecision& precision : output.by_class) {
    lines.push_back(Text("class", precision.label, ": ", precision.value));
  }
  return lines;
}

LogObserver::LogObserver() : LogObserver(WriteToGlog, WriteNotice, WarnInGlog) {}

LogObserver::LogObserver(Write log, Write notice, Write notice_in_training)
    : log_(std::move(log)), notice_(std::move(notice)), notice_in_training_(std::move(notice_in_training)) {}

void LogObserver::OnNotice(const Diagnostic& notice) {
  if (!notices_.insert(notice.ToString()).second) return;
  const Write& write = started_ && notice_in_training_ ? notice_in_training_ : notice_;
  write(notice.severity == Diagnostic::Severity::kError, notice.ToString());
}

void LogObserver::OnStart(const TrainingStart& start) {
  started_ = true;
  plateau_ = start.lr_policy == "plateau";
  Log("Starting Optimization");
  Log("Solving " + start.net);
  Log("Learning Rate Policy: " + start.lr_policy);
  if (!start.snapshot_prefix.empty()) Log("Snapshots: " + start.snapshot_prefix + "_iter_*");
  if (start.threads > 1) {
    Log(Text("Hogwild: ", start.threads,
             " threads change the same parameters, each with batch_size records of its own"));
  }
  if (start.ranks > 1) Log(Text("Devices: ", start.ranks, ", each with batch_size records of its own"));
  Log(Text("Random seed: ", start.seed,
           start.seed_drawn ? " (drawn for this run; random_seed in the solver file repeats it)" : ""));
}

void LogObserver::OnWeights(const WeightsLoaded& loaded) {
  Log("Finetuning from " + loaded.path);
  const std::string copied = Listed(loaded.report.copied);
  const size_t count = loaded.report.copied.size();
  Log(Text("Copied ", count, count == 1 ? " layer" : " layers", copied.empty() ? "" : ": ", copied));
  for (const std::string& layer : loaded.report.ignored) Log("Ignoring source layer " + layer);
  for (const std::string& layer : loaded.report.fresh) Log("Layer " + layer + " is not in it and starts afresh");
}

void LogObserver::OnRestored(const SnapshotRestored& restored) {
  Log("Resuming from " + restored.state_path);
  Log(Text("Restored iteration ", restored.iteration, ", weights from ", restored.model_path));
  if (!restored.exact) Log("The snapshot is Caffe's own: data is read from its beginning and random numbers are new");
}

void LogObserver::OnDisplay(const Display& display) {
  if (display.final) {
    Log(Text("Iteration ", display.iteration, ", loss = ", display.smoothed_loss));
    return;
  }
  const double rate = display.seconds > 0 ? display.iterations / display.seconds : 0;
  Log(Text("Iteration ", display.iteration, " (", static_cast<float>(rate), " iter/s, ",
           static_cast<float>(display.seconds), "s/", display.iterations, " iters), loss = ", display.smoothed_loss));
  int index = 0;
  for (const OutputValue& output : display.outputs) {
    Log(Text("    Train net output #", index++, ": ", output.name, " = ", output.value, LossNote(output)));
  }
  Log(Text("Iteration ", display.iteration, ", lr = ", display.learning_rate));
}

void LogObserver::OnMeanSizes(const MeanSizes& sizes) {
  Log(Text("Mean sizes of numbers, iteration ", sizes.iteration, ":"));
  TextTable table({"layer", "top or parameter", ">value", ">gradient"});
  for (const auto* rows : {&sizes.tops, &sizes.parameters}) {
    if (rows != &sizes.tops) table.AddRule();
    for (const MeanSizes::Row& row : *rows) {
      table.AddRow({row.layer, row.name, Text(row.value), row.gradient ? Text(*row.gradient) : ""});
    }
  }
  for (const std::string& line : table.Lines()) Log("    " + line);
}

void LogObserver::OnClipped(const GradientsClipped& clipped) {
  Log(Text("Gradient clipping: scaling down gradients (L2 norm ", clipped.norm, " > ", clipped.limit,
           ") by scale factor ", clipped.limit / clipped.norm));
}

void LogObserver::OnOverflowed(const GradientsOverflowed& overflowed) {
  Log(Text("Loss scale: lowered to ", overflowed.loss_scale, ", gradients of iteration ", overflowed.iteration,
           " were not finite; ", overflowed.left_out ? "that update is left out" : "they are computed once more"));
}

void LogObserver::OnStep(const LearningRateStepped& stepped) {
  Log(Text(plateau_ ? "Plateau" : "MultiStep", " Status: Iteration ", stepped.iteration, ", step = ", stepped.step));
}

void LogObserver::OnTestStart(const TestStart& test) {
  Log(Text("Iteration ", test.iteration, ", Testing net (#", test.net, ")"));
}

void LogObserver::OnTest(const TestResult& result) {
  if (result.loss) Log(Text("Test loss: ", *result.loss));
  int index = 0;
  for (const OutputValue& output : result.outputs) {
    for (const std::string& line : ClassLines(output)) Log(line);
    Log(Text("    Test net output #", index++, ": ", output.name, " = ", output.value, LossNote(output)));
  }
}

void LogObserver::OnBest(const BestFound& best) {
  Log(Text("Best so far: ", best.output, " = ", best.value, ", kept in ", best.model_path));
}

void LogObserver::OnCluster(const ClusterChanged& change) {
  const std::string text = Text(change.warning ? "Warning: " : "", change.text, " (", change.workers, " workers)");
  change.warning ? Warn(text) : Log(text);
}

void LogObserver::OnClusterEnd(const ClusterSummary& summary) {
  if (!summary.workers.empty()) {
    Log("What each worker did:");
    for (const std::string& line : SummaryLines(summary)) Log("    " + line);
  }
  if (!summary.warning.empty()) Warn("Warning: " + summary.warning);
}

void LogObserver::OnSnapshot(const SnapshotWritten& snapshot) {
  Log(Text("Snapshotting to ", IsHdf5(snapshot.model_path) ? "HDF5 file " : "binary proto file ", snapshot.model_path));
  if (!snapshot.ema_path.empty()) {
    Log(Text("Snapshotting the moving average to ", IsHdf5(snapshot.ema_path) ? "HDF5 file " : "binary proto file ",
             snapshot.ema_path));
  }
  Log(Text("Snapshotting solver state to ", IsHdf5(snapshot.state_path) ? "HDF5 file " : "binary proto file ",
           snapshot.state_path));
}

void LogObserver::OnSnapshotFailed(const SnapshotFailed& failed) {
  log_(true, Text("Snapshot at iteration ", failed.iteration, " failed: ", failed.message));
}

void LogObserver::OnEnd(const TrainingEnd& end) {
  if (end.failed_snapshots > 0) log_(true, Text(end.failed_snapshots, " snapshot(s) could not be written"));
  if (end.best) {
    Log(Text("Best kept: ", end.best->output, " = ", end.best->value, " at iteration ", end.best->iteration, ", in ",
             end.best->model_path));
  }
  if (end.out_of_patience) {
    Log(Text("Stopping at iteration ", end.iteration, ": the last tests were not better (best { patience })"));
  }
  Log(end.stopped_early ? "Optimization stopped early." : "Optimization Done.");
}

}  // namespace crema
