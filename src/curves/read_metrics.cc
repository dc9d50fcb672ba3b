// Reads JSON lines (https://jsonlines.org) that MetricsObserver writes.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "crema/error.h"
#include "curves/training_run.h"

namespace crema {

namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

const Value* Find(const Struct& record, const std::string& key) {
  const auto found = record.fields().find(key);
  return found == record.fields().end() ? nullptr : &found->second;
}

std::string TextOf(const Struct& record, const std::string& key) {
  const Value* value = Find(record, key);
  return value ? value->string_value() : "";
}

double NumberOf(const Value& value) {
  return value.kind_case() == Value::kNumberValue ? value.number_value() : std::numeric_limits<double>::quiet_NaN();
}

// Not a number where it is absent or null.
double NumberOf(const Struct& record, const std::string& key) {
  const Value* value = Find(record, key);
  return NumberOf(value ? *value : Value());
}

// 0 where it is no number.
double NumberOrZero(const Struct& record, const std::string& key) {
  const double number = NumberOf(record, key);
  return std::isfinite(number) ? number : 0;
}

int WholeOf(const Struct& record, const std::string& key) {
  return static_cast<int>(std::clamp(NumberOrZero(record, key), 0.0, double{INT_MAX}));
}

// {"accuracy": 0.9, "by_class": [0.8, 1]} with {"loss": 1} of what is a loss.
std::vector<OutputValue> OutputsOf(const Struct& record) {
  std::vector<OutputValue> outputs;
  const Value* values = Find(record, "outputs");
  const Value* weights = Find(record, "loss_weights");
  if (!values) return outputs;
  // Sorted: that map's own order differs from run to run.
  const auto& fields = values->struct_value().fields();
  for (const auto& [name, value] : std::map<std::string, Value>(fields.begin(), fields.end())) {
    const bool is_loss = weights && Find(weights->struct_value(), name);
    const auto weight = static_cast<float>(is_loss ? NumberOrZero(weights->struct_value(), name) : 0);
    if (value.kind_case() == Value::kListValue) {
      for (const Value& element : value.list_value().values()) {
        outputs.push_back({name, static_cast<float>(NumberOf(element)), weight, is_loss});
      }
    } else {
      outputs.push_back({name, static_cast<float>(NumberOf(value)), weight, is_loss});
    }
  }
  return outputs;
}

[[noreturn]] void FailAsOther(const std::string& path, int line) {
  throw UserError(
      Location{path, line, 0},
      "not a record of metrics, which is one JSON object a line with an \"event\"; where the beginning of the "
      "file was cut off, remove what is left of a record");
}

// Deeper than any record is. The parser's time grows with the square of it.
bool NestsTooDeeply(const std::string& json) {
  constexpr int kDeepest = 20;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (quoted && json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (json[i] == '[' || json[i] == '{')) {
      if (++depth > kDeepest) return true;
    } else if (!quoted && (json[i] == ']' || json[i] == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace

TrainingRun ReadMetrics(const std::string& text, const std::string& path, int* earlier, const std::stop_token& stop) {
  RunBuilder run;
  std::istringstream stream(text);
  std::string line;
  bool any = false;  // records so far
  int broken = 0;    // a line before them
  for (int number = 1; std::getline(stream, line); ++number) {
    if (stop.stop_requested()) throw EnvironmentError(path + ": reading it was stopped");
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Struct record;
    const bool whole = !NestsTooDeeply(line) && google::protobuf::util::JsonStringToMessage(line, &record).ok();
    const std::string event = whole ? TextOf(record, "event") : "";
    if (event.empty()) {
      // A program that was killed, or a full disk, leaves half of one.
      if (any) continue;
      if (broken > 0) FailAsOther(path, broken);
      broken = number;
      continue;
    }
    any = true;
    const int iteration = WholeOf(record, "iteration");
    const double seconds = NumberOrZero(record, "seconds");
    if (event == "start") {
      if (iteration > 0 && !run.empty()) {
        run.ResumeAt(iteration, WholeOf(record, "max_iter"));
      } else {
        *earlier += run.empty() ? 0 : 1;
        run.Start(TextOf(record, "net"), WholeOf(record, "max_iter"));
      }
    } else if (event == "train") {
      run.AddLoss(iteration, seconds, NumberOf(record, "loss"));
    } else if (event == "display") {
      run.AddOutputs(CurveKind::kTraining, iteration, seconds, 0, OutputsOf(record));
      run.AddRate(iteration, seconds, NumberOf(record, "lr"));
    } else if (event == "test") {
      const int net = WholeOf(record, "net");
      if (Find(record, "loss")) run.AddTestLoss(iteration, seconds, net, NumberOf(record, "loss"));
      run.AddOutputs(CurveKind::kTest, iteration, seconds, net, OutputsOf(record));
    } else if (event == "end") {
      run.End(iteration);
    }
  }
  if (!any) FailAsOther(path, broken);
  TrainingRun result = run.Finish();
  Diagnostics passed_over;
  if (broken > 0) {
    passed_over.Warning({path, broken, 0},
                        "passed over: half a record of metrics, where the beginning of the file was cut off");
  }
  result.warnings = passed_over.list();
  return result;
}

}  // namespace crema
