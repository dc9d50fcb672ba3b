// What stands around a training that people start from a terminal: log, progress, signals.
#ifndef CREMA_TOOLS_TRAINING_CONSOLE_H_
#define CREMA_TOOLS_TRAINING_CONSOLE_H_

#include <memory>

#include "crema/solver.h"
#include "report/log_observer.h"
#include "report/progress_observer.h"
#include "solver/signals.h"

namespace crema::tools {

// Must outlive the solver whose options it fills. At most one at a time in a process.
class TrainingConsole {
 public:
  TrainingConsole(SolverAction on_interrupt, SolverAction on_hangup)
      : progress_(ProgressObserver::OnStderr()), signals_(on_interrupt, on_hangup) {}

  void Watch(SolverOptions* options) {
    options->requested_action = [this] { return signals_.Take(); };
    // The progress line goes away before the log prints.
    if (progress_) options->observers.push_back(progress_.get());
    options->observers.push_back(&log_);
  }

  // Of a process that mpirun started, once MPI runs.
  void ForLaunched() { signals_.TakeLaunchedSignals(); }

  LogObserver& log() { return log_; }

 private:
  LogObserver log_;
  std::unique_ptr<ProgressObserver> progress_;
  SignalActions signals_;
};

}  // namespace crema::tools

#endif  // CREMA_TOOLS_TRAINING_CONSOLE_H_
