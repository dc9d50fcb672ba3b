// A profile in Chrome's trace event format, for https://ui.perfetto.dev and chrome://tracing.
#ifndef CREMA_REPORT_TRACE_H_
#define CREMA_REPORT_TRACE_H_

#include <span>
#include <string>
#include <vector>

#include "graph/program.h"
#include "report/step_recording.h"

namespace crema {

// Two tracks: what the solver is at, and the steps that compute. Times count from the earliest event.
class Trace {
 public:
  using Time = StepRecorder::Clock::time_point;

  // `net` must outlive the trace.
  explicit Trace(const CompiledNet& net) : net_(net) {}

  // What the solver does from `begin` to `end`; phases lie beside or within each other.
  void AddPhase(std::string name, std::string category, Time begin, Time end);
  // The steps in the order they ran, and phases "forward" and "backward" for their passes.
  void AddSteps(std::span<const StepEvent> events);

  // Complete events ("ph": "X") with name, category and, for steps, kernel, shape, gflop and bytes.
  std::string ToJson() const;
  // The same as a file; throws EnvironmentError where that fails, and then leaves nothing behind.
  void Write(const std::string& path) const;

 private:
  struct Phase {
    std::string name, category;
    Time begin, end;
  };

  const CompiledNet& net_;
  std::vector<Phase> phases_;
  std::vector<StepEvent> steps_;
};

}  // namespace crema

#endif  // CREMA_REPORT_TRACE_H_
