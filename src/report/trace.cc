#include "report/trace.h"

#include <algorithm>

#include "base/atomic_file.h"
#include "report/step_info.h"
#include "report/trace_writer.h"

namespace crema {

namespace {

constexpr int kSolver = 1, kCompute = 2;  // tracks

int64_t Nanoseconds(Trace::Time time, Trace::Time origin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time - origin).count();
}

void Arguments(const StepInfo& info, JsonWriter& json) {
  json.Field("kernel", info.kernel);
  json.Field("shape", info.shape.ToString());
  json.Field("gflop", info.flops / 1e9);
  json.Field("bytes", info.bytes);
}

}  // namespace

void Trace::AddPhase(std::string name, std::string category, Time begin, Time end) {
  phases_.push_back({std::move(name), std::move(category), begin, end});
}

void Trace::AddSteps(std::span<const StepEvent> events) {
  const int forward_steps = static_cast<int>(net_.program.forward.size());
  const StepEvent* last = nullptr;
  for (const StepEvent& event : events) {
    const bool forward = event.step < forward_steps;
    // A part of the batch may have been turned to once more.
    const bool goes_on = last && event.step != 0 && event.step != forward_steps &&
                         (event.step == last->step + 1 || (forward && last->step < forward_steps));
    const char* const direction = forward ? "forward" : "backward";
    if (goes_on) {
      phases_.back().end = event.end;
    } else {
      AddPhase(direction, direction, event.begin, event.end);
    }
    last = &event;
  }
  steps_.insert(steps_.end(), events.begin(), events.end());
}

std::string Trace::ToJson() const {
  std::vector<Phase> phases = phases_;
  // An event comes before those within it.
  std::stable_sort(phases.begin(), phases.end(), [](const Phase& a, const Phase& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  Time origin = phases.empty() ? Time() : phases.front().begin;
  if (!steps_.empty() && (phases.empty() || steps_.front().begin < origin)) origin = steps_.front().begin;

  TraceWriter writer(TraceWriter::Form::kObject);
  writer.Name("process_name", kSolver, "crema: " + net_.graph.name);
  writer.Name("thread_name", kSolver, "phases");
  writer.Name("thread_name", kCompute, "steps");
  for (const Phase& p : phases) {
    writer.Span(p.name, p.category, kSolver, Nanoseconds(p.begin, origin), Nanoseconds(p.end, origin));
  }
  const std::vector<StepInfo> infos = DescribeSteps(net_);
  for (const StepEvent& e : steps_) {
    const StepInfo& info = infos[e.step];
    writer.Span(info.name, info.category, kCompute, Nanoseconds(e.begin, origin), Nanoseconds(e.end, origin),
                [&info](JsonWriter& json) { Arguments(info, json); });
  }
  return writer.Finish();
}

void Trace::Write(const std::string& path) const { WriteWholeFile(path, ToJson()); }

}  // namespace crema
