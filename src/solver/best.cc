#include "solver/best.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/suggest.h"
#include "crema/error.h"

namespace crema {

std::string BestModelPath(const std::string& prefix) { return prefix + "_best.caffemodel"; }

Best::Best(const SolverFile& file, const Net& test_net) : param_(file.solver.best()) {
  const auto at = [&file](const char* field) { return file.source ? file.source->Field(field) : Location{}; };
  std::vector<std::string> names;
  for (const NetOutput& output : test_net.outputs()) {
    names.push_back(output.name);
    if (output.name != param_.output()) continue;
    if (output.value.count() != 1) {
      throw UserError(at("best.output"), "output \"" + output.name + "\" of the test net has " +
                                             std::to_string(output.value.count()) +
                                             " values, and best compares one; name another output");
    }
    higher_ =
        param_.better() == BestParameter::HIGHER || (param_.better() == BestParameter::AUTO && output.loss_weight == 0);
    return;
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  throw UserError(at("best.output"), "the test net has no output \"" + param_.output() + "\"" +
                                         DidYouMean(param_.output(), names) + "; it has " + known +
                                         ": set best { output: ... } to one of them");
}

float Best::ValueIn(const TestResult& result) const {
  const auto found = std::find_if(result.outputs.begin(), result.outputs.end(),
                                  [&](const OutputValue& value) { return value.name == param_.output(); });
  CREMA_CHECK(found != result.outputs.end()) << param_.output();
  return found->value;
}

bool Best::IsBetter(float value) const {
  if (std::isnan(value)) return false;
  if (!state_.has_value()) return true;
  return higher_ ? value > state_.value() : value < state_.value();
}

void Best::Add(int iteration, float value, bool written) {
  if (written) {
    state_.set_value(value);
    state_.set_iteration(iteration);
    state_.set_tests_since(0);
  } else {
    state_.set_tests_since(state_.tests_since() + 1);
  }
}

}  // namespace crema
