#include "solver/snapshots/best.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "solver/test_outputs.h"

namespace crema {

Best::Best(const SolverFile& file, const Net& test_net, std::vector<Diagnostic>* warnings)
    : param_(file.solver.best()) {
  state_.set_output(param_.output());
  const auto at = [&file](const char* field) { return file.source ? file.source->Field(field) : Location{}; };
  const TestOutputs outputs(test_net);
  const OutputValue value = outputs.OneValueOf(param_.output(), at("best.output"),
                                               {.comparer = "best", .field = "best { output: ... }", .prefix = ""});
  higher_ = param_.better() == BestParameter::AUTO ? !value.is_loss : param_.better() == BestParameter::HIGHER;
  if (outputs.IsMeasured(param_.output())) return;
  Diagnostic doubt;
  doubt.severity = Diagnostic::Severity::kWarning;
  doubt.where = at("best.output");
  doubt.message = "output \"" + param_.output() +
                  "\" is neither a loss nor an accuracy, nor made of one, so it may say nothing about how good the "
                  "parameters are; best compares it all the same";
  warnings->push_back(std::move(doubt));
}

float Best::ValueIn(const TestResult& result) const {
  const auto found = std::find_if(result.outputs.begin(), result.outputs.end(),
                                  [&](const OutputValue& value) { return value.name == param_.output(); });
  CREMA_CHECK(found != result.outputs.end()) << param_.output();
  return found->value;
}

bool Best::IsBetter(float value) const {
  if (std::isnan(value)) return false;
  return !state_.has_value() || IsBetterThan(state_.value(), value);
}

void Best::Add(int iteration, float value, bool written) {
  const bool improved = IsBetter(value) && (!state_.has_lost_value() || IsBetterThan(state_.lost_value(), value));
  state_.set_tests_since(improved ? 0 : state_.tests_since() + 1);
  if (written) {
    AddWritten(iteration, value);
  } else if (improved) {
    state_.set_lost_value(value);
    state_.set_lost_iteration(iteration);
  }
}

void Best::AddWritten(int iteration, float value) {
  state_.set_value(value);
  state_.set_iteration(iteration);
  if (state_.has_lost_value() && !IsBetterThan(value, state_.lost_value())) ForgetLost();
}

void Best::Restore(const BestState& state) {
  state_ = state;
  state_.set_output(param_.output());
}

std::optional<Best::Lost> Best::lost() const {
  return state_.has_lost_value() ? std::optional(Lost{state_.lost_iteration(), state_.lost_value()}) : std::nullopt;
}

void Best::ForgetLost() {
  state_.clear_lost_value();
  state_.clear_lost_iteration();
}

}  // namespace crema
