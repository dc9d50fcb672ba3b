#include "report/profile_observer.h"

#include <algorithm>
#include <utility>

#include "base/output_path.h"
#include "graph/program.h"

namespace crema {

ProfileObserver::ProfileObserver(std::string path, int iterations) : path_(std::move(path)), iterations_(iterations) {
  CheckOutputFile(path_, true, {});
}

void ProfileObserver::Follow(Net& net) {
  run_ = std::make_unique<Run>(net);
  const size_t steps = static_cast<size_t>(net.compiled().program.recorded());
  run_->steps.Reserve(steps * static_cast<size_t>(iterations_));
  net.set_recorder(&run_->steps);
  const std::vector<Step>& backward = net.compiled().program.backward;
  updates_are_steps_ = std::any_of(backward.begin(), backward.end(), [](const Step& step) {
    return step.kind == StepKind::kUseGradient && !step.bottoms.empty();
  });
  taken_ = Clock::now();
}

void ProfileObserver::Finish() {
  if (!run_) return;
  run_->net->set_recorder(nullptr);
  run_->trace.AddSteps(run_->steps.events());
  try {
    run_->trace.Write(path_);
  } catch (const EnvironmentError& error) {
    error_ = error.what();
  }
  run_.reset();
}

void ProfileObserver::TakePhase(const std::string& name, const std::string& category, Clock::time_point begin) {
  const Clock::time_point now = Clock::now();
  run_->trace.AddPhase(name, category, std::max(begin, taken_), now);
  taken_ = now;
}

void ProfileObserver::OnDisplay(const Display&) {
  if (run_ && !run_->steps.events().empty()) TakePhase("display", "display", run_->steps.events().back().end);
}

void ProfileObserver::OnIteration(const IterationEnd& end) {
  if (!run_) return;
  const std::vector<StepEvent>& steps = run_->steps.events();
  if (steps.size() > steps_before_) {
    if (!updates_are_steps_) TakePhase("update", "update", steps.back().end);
    taken_ = std::max(taken_, steps.back().end);
    run_->trace.AddPhase("iteration " + std::to_string(end.iteration), "iteration", steps[steps_before_].begin, taken_);
  }
  steps_before_ = steps.size();
  if (--iterations_ <= 0) Finish();
}

void ProfileObserver::OnTestStart(const TestStart&) { test_ = Clock::now(); }

void ProfileObserver::OnTest(const TestResult& result) {
  if (!run_ || !test_) return;
  const Clock::time_point now = Clock::now();
  run_->trace.AddPhase("test net #" + std::to_string(result.net), "test", *test_, now);
  taken_ = now;
}

void ProfileObserver::OnSnapshot(const SnapshotWritten& snapshot) {
  if (!run_) return;
  const std::chrono::duration<double> taken(snapshot.seconds);
  TakePhase("snapshot", "snapshot", Clock::now() - std::chrono::duration_cast<Clock::duration>(taken));
}

}  // namespace crema
