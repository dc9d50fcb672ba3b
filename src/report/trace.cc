#include "report/trace.h"

#include <algorithm>

#include "base/atomic_file.h"
#include "report/json_writer.h"
#include "report/step_info.h"

namespace crema {

namespace {

enum class Track { kSolver = 1, kCompute = 2 };

class TraceWriter {
 public:
  explicit TraceWriter(Trace::Time origin) : origin_(origin) {
    json_.BeginObject();
    json_.Key("displayTimeUnit");
    json_.String("ms");
    json_.NewLine(0);
    json_.Key("traceEvents");
    json_.BeginArray();
  }

  void Name(const char* what, Track track, const std::string& name) {
    Begin(what, "M", track);
    json_.Key("args");
    json_.BeginObject();
    json_.Key("name");
    json_.String(name);
    json_.EndObject();
    json_.EndObject();
  }

  void Event(const std::string& name, const std::string& category, Track track, Trace::Time begin, Trace::Time end,
             const StepInfo* info) {
    Begin(name, "X", track);
    json_.Key("cat");
    json_.String(category);
    json_.Key("ts");
    json_.Thousandths(Nanoseconds(begin));
    json_.Key("dur");
    json_.Thousandths(Nanoseconds(end) - Nanoseconds(begin));
    if (info) Arguments(*info);
    json_.EndObject();
  }

  std::string Finish() {
    json_.EndArray();
    json_.EndObject();
    return json_.text() + "\n";
  }

 private:
  int64_t Nanoseconds(Trace::Time time) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - origin_).count();
  }

  void Begin(const std::string& name, const char* phase, Track track) {
    json_.NewLine(1);
    json_.BeginObject();
    json_.Key("name");
    json_.String(name);
    json_.Key("ph");
    json_.String(phase);
    json_.Key("pid");
    json_.Integer(1);
    json_.Key("tid");
    json_.Integer(static_cast<int>(track));
  }

  void Arguments(const StepInfo& info) {
    json_.Key("args");
    json_.BeginObject();
    json_.Key("kernel");
    json_.String(info.kernel);
    json_.Key("shape");
    json_.String(info.shape.ToString());
    json_.Key("gflop");
    json_.Number(info.flops / 1e9);
    json_.Key("bytes");
    json_.Integer(static_cast<int64_t>(info.bytes));
    json_.EndObject();
  }

  const Trace::Time origin_;
  JsonWriter json_;
};

}  // namespace

void Trace::AddPhase(std::string name, std::string category, Time begin, Time end) {
  phases_.push_back({std::move(name), std::move(category), begin, end});
}

void Trace::AddSteps(std::span<const StepEvent> events) {
  const int forward_steps = static_cast<int>(net_.program.forward.size());
  const StepEvent* last = nullptr;
  for (const StepEvent& event : events) {
    const bool forward = event.step < forward_steps;
    const bool goes_on = last && event.step == last->step + 1 && event.step != forward_steps;
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

  TraceWriter writer(origin);
  writer.Name("process_name", Track::kSolver, "crema: " + net_.graph.name);
  writer.Name("thread_name", Track::kSolver, "phases");
  writer.Name("thread_name", Track::kCompute, "steps");
  for (const Phase& p : phases) writer.Event(p.name, p.category, Track::kSolver, p.begin, p.end, nullptr);
  const std::vector<StepInfo> infos = DescribeSteps(net_);
  for (const StepEvent& e : steps_) {
    const StepInfo& info = infos[e.step];
    writer.Event(info.name, info.category, Track::kCompute, e.begin, e.end, &info);
  }
  return writer.Finish();
}

void Trace::Write(const std::string& path) const {
  AtomicFile file(path);
  file.Write(ToJson());
  file.Commit();
}

}  // namespace crema
