// Records the first iterations of a training run and writes them as a trace (report/trace.h).
#ifndef CREMA_REPORT_PROFILE_OBSERVER_H_
#define CREMA_REPORT_PROFILE_OBSERVER_H_

#include <memory>
#include <optional>
#include <string>

#include "crema/observer.h"
#include "report/step_recording.h"
#include "report/trace.h"

namespace crema {

// Should come last among the observers, so that what the others take is told apart. Once the trace is written it costs
// nothing more.
class ProfileObserver : public Observer {
 public:
  // Throws EnvironmentError where `path` cannot be written.
  ProfileObserver(std::string path, int iterations);

  // Follows the train net from here on; it must live until Finish.
  void Follow(Net& net);
  // Writes what was recorded, unless that was done when the last of the iterations ended. Training calls it at its end;
  // where an exception ends it, the program does.
  void Finish();
  // Why the trace could not be written; empty while nothing went wrong.
  const std::string& error() const { return error_; }

  void OnIteration(const IterationEnd& end) override;
  void OnDisplay(const Display& display) override;
  void OnTestStart(const TestStart& test) override;
  void OnTest(const TestResult& result) override;
  void OnSnapshot(const SnapshotWritten& snapshot) override;
  void OnEnd(const TrainingEnd&) override { Finish(); }

 private:
  using Clock = StepRecorder::Clock;
  struct Run {
    explicit Run(Net& followed) : net(&followed), trace(followed.compiled()) {}
    Net* net;
    Trace trace;
    StepRecording steps;
  };

  void TakePhase(const std::string& name, const std::string& category, Clock::time_point begin);

  const std::string path_;
  int iterations_;
  std::unique_ptr<Run> run_;               // null before Follow and after Finish
  size_t steps_before_ = 0;                // this iteration
  bool updates_are_steps_ = false;         // of the backward pass
  Clock::time_point taken_;                // end of the last phase
  std::optional<Clock::time_point> test_;  // begin of the test that runs
  std::string error_;
};

}  // namespace crema

#endif  // CREMA_REPORT_PROFILE_OBSERVER_H_
