#include "solver/best.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/suggest.h"
#include "crema/error.h"
#include "graph/program.h"
#include "solver/test_outputs.h"

namespace crema {

namespace {

// Whether a loss layer makes it, also one that trains nothing since its loss_weight is 0.
bool IsOfLossLayer(const Net& net, const std::string& output) {
  const Graph& graph = net.compiled().graph;
  const std::vector<NetOutput> outputs = net.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Node& maker = graph.nodes[static_cast<size_t>(graph.values[static_cast<size_t>(graph.outputs[i])].producer)];
    if (outputs[i].name == output && maker.setup->is_loss() && maker.tops[0] == graph.outputs[i]) return true;
  }
  return false;
}

}  // namespace

Best::Best(const SolverFile& file, const Net& test_net) : param_(file.solver.best()) {
  const auto at = [&file](const char* field) { return file.source ? file.source->Field(field) : Location{}; };
  const TestOutputs outputs(test_net);
  const std::vector<OutputValue> values = outputs.ValuesOf(param_.output());
  if (values.size() == 1) {
    const bool is_loss = values[0].loss_weight != 0 || IsOfLossLayer(test_net, param_.output());
    higher_ = param_.better() == BestParameter::AUTO ? !is_loss : param_.better() == BestParameter::HIGHER;
    return;
  }
  const std::vector<std::string> names = outputs.names();
  if (std::find(names.begin(), names.end(), param_.output()) != names.end()) {
    throw UserError(at("best.output"),
                    "output \"" + param_.output() + "\" of the test net has " + std::to_string(values.size()) +
                        " values, and best compares one; name another output, or take it apart with a Slice layer");
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
  return !state_.has_value() || IsBetterThan(state_.value(), value);
}

void Best::Add(int iteration, float value, bool written) {
  const bool improved = IsBetter(value) && (!lost_ || IsBetterThan(lost_->value, value));
  state_.set_tests_since(improved ? 0 : state_.tests_since() + 1);
  if (improved) lost_ = written ? std::nullopt : std::optional(Lost{iteration, value});
  if (!written) return;
  state_.set_value(value);
  state_.set_iteration(iteration);
}

}  // namespace crema
