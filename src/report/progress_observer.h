// A progress line below the log of a training run, on terminals.
#ifndef CREMA_REPORT_PROGRESS_OBSERVER_H_
#define CREMA_REPORT_PROGRESS_OBSERVER_H_

#include <memory>
#include <string>
#include <utility>

#include "base/duration.h"
#include "base/terminal_line.h"
#include "crema/observer.h"

namespace crema {

// A TerminalLine that is erased at every event that others may print lines for, so it must be called before them; also
// where training ends by an exception.
class ProgressObserver : public Observer {
 public:
  explicit ProgressObserver(Terminal terminal) : line_(std::move(terminal)) {}

  // On stderr, or null where that is no terminal that can move its cursor.
  static std::unique_ptr<ProgressObserver> OnStderr();

  void OnStart(const TrainingStart& start) override;
  void OnIteration(const IterationEnd& end) override;
  void OnNotice(const Diagnostic&) override { Erase(); }
  void OnWeights(const WeightsLoaded&) override { Erase(); }
  void OnRestored(const SnapshotRestored&) override { Erase(); }
  void OnDisplay(const Display&) override { Erase(); }
  void OnMeanSizes(const MeanSizes&) override { Erase(); }
  void OnClipped(const GradientsClipped&) override { Erase(); }
  void OnOverflowed(const GradientsOverflowed&) override { Erase(); }
  void OnStep(const LearningRateStepped&) override { Erase(); }
  void OnTestStart(const TestStart&) override { Erase(); }
  void OnTest(const TestResult&) override { Erase(); }
  void OnBest(const BestFound&) override { Erase(); }
  void OnSnapshot(const SnapshotWritten&) override { Erase(); }
  void OnSnapshotFailed(const SnapshotFailed&) override { Erase(); }
  void OnCluster(const ClusterChanged&) override { Erase(); }
  void OnClusterEnd(const ClusterSummary&) override { Erase(); }
  void OnEnd(const TrainingEnd&) override { Erase(); }

 private:
  void Erase() { line_.Erase(); }
  std::string Text(size_t width) const;

  TerminalLine line_;
  int iteration_ = 0, max_iter_ = 0;
  double seconds_each_ = 0, loss_ = 0;  // smoothed
  bool measured_ = false;
};

}  // namespace crema

#endif  // CREMA_REPORT_PROGRESS_OBSERVER_H_
