#include "base/number_text.h"
#include "report/dump.h"

namespace crema {

namespace {

std::string Multiplier(const char* name, float value) {
  if (value == 1) return "";
  return std::string(", ") + name + " " + FormatNumber(value);
}

std::string ParamLine(const Graph& graph, const Node& node, size_t i) {
  const GraphParam& param = graph.params[node.params[i]];
  const Node& owner = graph.nodes[param.owner];
  std::string text = param.spec.shape.ToString();
  if (!param.shared_name.empty()) text += ", named \"" + param.shared_name + "\"";
  if (&owner != &node) {
    return text + ", of layer \"" + owner.name() + "\" [" + std::to_string(param.owner_index) + "]";
  }
  if (!param.learnable) return text + ", a statistic";
  return text + Multiplier("lr_mult", param.lr_mult) + Multiplier("decay_mult", param.decay_mult);
}

}  // namespace

int64_t ParamCount(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes) {
    for (int p : node.params) count += graph.params[p].spec.shape.count();
  }
  return count;
}

int64_t LearnableCount(const Graph& graph) {
  int64_t count = 0;
  for (const GraphParam& param : graph.params) count += param.spec.shape.count();
  return count;
}

std::string NetTitle(const CompiledNet& net) {
  const Graph& graph = net.graph;
  return (graph.name.empty() ? "net without a name" : graph.name) + ", phase " + Phase_Name(graph.phase) + ": " +
         std::to_string(graph.nodes.size()) + " layers, " + FormatCount(LearnableCount(graph)) + " parameters";
}

std::string DumpGraph(const CompiledNet& net) {
  const Graph& graph = net.graph;
  const Program& program = net.program;
  std::string text = NetTitle(net) + "\n";
  for (const auto& [name, shape] : net.assumed_shapes) text += "assumed: " + name + " " + shape.ToString() + "\n";
  const auto value_line = [&](const char* what, int v, const std::string& note) {
    const Value& value = graph.values[v];
    text += std::string("  ") + what + " " + value.label() + "  " + value.spec.shape.ToString();
    if (value.spec.dtype != DType::kF32) text += std::string(" ") + Name(value.spec.dtype);
    text += note + "\n";
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    text += "\n" + std::to_string(n) + " \"" + node.name() + "\" (" + node.type->name + ")";
    if (node.setup->is_source()) text += ", source";
    if (node.setup->is_view()) text += ", view";
    if (node.runs_backward) text += ", backward";
    text += "\n";
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      value_line("bottom", node.bottoms[i], node.bottom_grads[i] ? ", gradient" : "");
    }
    for (size_t i = 0; i < node.params.size(); ++i) {
      text += "  param  " + ParamLine(graph, node, i) + (node.param_grads[i] ? ", gradient" : "") + "\n";
    }
    for (size_t i = 0; i < node.tops.size(); ++i) {
      std::string note = node.loss_weights[i] != 0 ? ", loss" + Multiplier("weight", node.loss_weights[i]) : "";
      if (program.value_grad[node.tops[i]] >= 0) note += ", gradient arrives";
      value_line("top   ", node.tops[i], note);
    }
  }
  text += "\noutputs:";
  for (int v : graph.outputs) text += " " + graph.values[v].label();
  return text + "\n";
}

}  // namespace crema
