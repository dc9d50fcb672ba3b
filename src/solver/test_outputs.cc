#include "solver/test_outputs.h"

#include <algorithm>

#include "base/listed.h"
#include "base/suggest.h"
#include "crema/error.h"
#include "graph/program.h"
#include "ops/operations.h"

namespace crema {

namespace {

// For each value whether it is made of a layer that `is_one`.
template <typename IsOne>
std::vector<bool> MadeOf(const Graph& graph, const IsOne& is_one) {
  std::vector<bool> made(graph.values.size());
  for (const Node& node : graph.nodes) {
    if (!is_one(node) &&
        std::none_of(node.bottoms.begin(), node.bottoms.end(), [&](int bottom) { return made[bottom]; })) {
      continue;
    }
    for (const int top : node.tops) made[top] = true;
  }
  return made;
}

bool Measures(const Node& node) {
  return node.setup->is_loss() || (!node.bottoms.empty() && !node.setup->is_differentiable());
}

}  // namespace

bool CountsOverPasses(const LayerParameter& layer) {
  return layer.type() == "SegAccuracy" && !layer.seg_accuracy_param().reset();
}

void BeginTest(Net& net) {
  for (const Node& node : net.compiled().graph.nodes) {
    if (!CountsOverPasses(*node.param)) continue;
    OperationsOf(*node.plan->context().device).Fill(0, node.layer->recurrent_state());
  }
}

TestOutputs::TestOutputs(const Net& net, ApVersion version) : net_(net), version_(version) {
  const Graph& graph = net.compiled().graph;
  const std::vector<NetOutput> outputs = net.outputs();
  const std::vector<bool> counted = MadeOf(graph, [](const Node& node) { return CountsOverPasses(*node.param); });
  const std::vector<bool> measured = MadeOf(graph, &Measures);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Node& maker = graph.nodes[static_cast<size_t>(graph.values[static_cast<size_t>(graph.outputs[i])].producer)];
    Output output = {outputs[i].name,
                     outputs[i].loss_weight,
                     outputs[i].is_loss,
                     maker.param->type() == "DetectionEvaluate",
                     counted[static_cast<size_t>(graph.outputs[i])],
                     outputs[i].is_loss || measured[static_cast<size_t>(graph.outputs[i])],
                     {}};
    if (!output.is_detection) output.sums.resize(static_cast<size_t>(outputs[i].value.count()));
    outputs_.push_back(std::move(output));
  }
}

void TestOutputs::AddBatch() {
  const std::vector<NetOutput> outputs = net_.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output& output = outputs_[i];
    if (output.is_detection) output.precision.Add(outputs[i].value);
    for (size_t k = 0; k < output.sums.size(); ++k) {
      output.sums[k] = (output.is_latest ? 0 : output.sums[k]) + outputs[i].value.value(static_cast<int64_t>(k));
    }
  }
  ++batches_;
}

std::vector<OutputValue> TestOutputs::Values(bool by_class) const {
  std::vector<OutputValue> values;
  const double batches = static_cast<double>(std::max<int64_t>(1, batches_));
  for (const Output& output : outputs_) {
    if (output.is_detection) {
      values.push_back(
          {output.name, static_cast<float>(output.precision.Mean(version_)), output.loss_weight, output.is_loss});
      if (by_class) values.back().by_class = output.precision.OfClasses(version_);
    }
    for (const double sum : output.sums) {
      values.push_back({output.name, static_cast<float>(output.is_latest ? sum : sum / batches), output.loss_weight,
                        output.is_loss});
    }
  }
  return values;
}

std::vector<OutputValue> TestOutputs::ValuesOf(const std::string& name) const {
  std::vector<OutputValue> values = Values();
  std::erase_if(values, [&name](const OutputValue& value) { return value.name != name; });
  return values;
}

OutputValue TestOutputs::OneValueOf(const std::string& name, const Location& where, const OutputUse& use) const {
  const std::vector<OutputValue> values = ValuesOf(name);
  if (values.size() == 1) return values[0];
  const std::vector<std::string> known = names();
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    throw UserError(where, use.prefix + "output \"" + name + "\" of the test net has " + std::to_string(values.size()) +
                               " values, and " + use.comparer +
                               " compares one; name another output, or take it apart with a Slice layer");
  }
  throw UserError(where, use.prefix + "the test net has no output \"" + name + "\"" + DidYouMean(name, known) +
                             "; it has " + Listed(known) + ": set " + use.field + " to one of them");
}

bool TestOutputs::IsMeasured(const std::string& name) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&name](const Output& output) { return output.name == name && output.is_measured; });
}

std::vector<std::string> TestOutputs::names() const {
  std::vector<std::string> names;
  for (const Output& output : outputs_) names.push_back(output.name);
  return names;
}

std::vector<std::string> TestOutputs::detections() const {
  std::vector<std::string> names;
  for (const Output& output : outputs_) {
    if (output.is_detection) names.push_back(output.name);
  }
  return names;
}

}  // namespace crema
