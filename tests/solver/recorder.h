// An observer that keeps everything it is told.
#ifndef CREMA_SOLVER_RECORDER_H_
#define CREMA_SOLVER_RECORDER_H_

#include <string>
#include <vector>

#include "crema/observer.h"

namespace crema {

class Recorder : public Observer {
 public:
  void OnStart(const TrainingStart& event) override { starts.push_back(event), order += 'b'; }
  void OnWeights(const WeightsLoaded& event) override { weights.push_back(event), order += 'w'; }
  void OnRestored(const SnapshotRestored& event) override { restored.push_back(event), order += 'r'; }
  void OnNotice(const Diagnostic& event) override { notices += event.ToString() + "\n"; }
  void OnIteration(const IterationEnd& event) override { iterations.push_back(event), order += '.'; }
  void OnDisplay(const Display& event) override { displays.push_back(event), order += 'd'; }
  void OnMeanSizes(const MeanSizes& event) override { sizes.push_back(event); }
  void OnClipped(const GradientsClipped& event) override { clipped.push_back(event); }
  void OnOverflowed(const GradientsOverflowed& event) override { overflowed.push_back(event); }
  void OnStep(const LearningRateStepped& event) override { steps.push_back(event); }
  void OnTestStart(const TestStart&) override { order += 't'; }
  void OnTest(const TestResult& event) override { tests.push_back(event), order += 'T'; }
  void OnBest(const BestFound& event) override { bests.push_back(event), order += 'B'; }
  void OnSnapshot(const SnapshotWritten& event) override { snapshots.push_back(event), order += 's'; }
  void OnSnapshotFailed(const SnapshotFailed& event) override { failed.push_back(event), order += 'f'; }
  void OnEnd(const TrainingEnd& event) override { ends.push_back(event), order += 'e'; }

  std::vector<TrainingStart> starts;
  std::vector<WeightsLoaded> weights;
  std::vector<SnapshotRestored> restored;
  std::string notices;
  std::vector<IterationEnd> iterations;
  std::vector<Display> displays;
  std::vector<MeanSizes> sizes;
  std::vector<GradientsClipped> clipped;
  std::vector<GradientsOverflowed> overflowed;
  std::vector<LearningRateStepped> steps;
  std::vector<TestResult> tests;
  std::vector<BestFound> bests;
  std::vector<SnapshotWritten> snapshots;
  std::vector<SnapshotFailed> failed;
  std::vector<TrainingEnd> ends;
  // One letter an event: (b)egin (w)eights (r)estored . (iteration) (d)isplay (t)est start (T)est (B)est (s)napshot
  // (f)ailed (e)nd.
  std::string order;
};

}  // namespace crema

#endif  // CREMA_SOLVER_RECORDER_H_
