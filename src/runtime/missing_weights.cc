#include "runtime/missing_weights.h"

#include <algorithm>

#include "graph/batch_norm_modes.h"
#include "graph/program.h"

namespace crema {

namespace {

bool ComputesWithFillers(const Graph& graph, const Node& node) {
  const std::string& first = graph.params[node.params[0]].filler.type();
  if (first == "bilinear" || first == "values") return true;
  // It reads no running statistics then, and has nothing else.
  if (node.type->name == "BatchNorm" && NormalizesByBatch(*node.param, graph.phase) &&
      !ScalesItself(node.param->batch_norm_param())) {
    return true;
  }
  const auto kept = [&](int i) {
    const GraphParam& param = graph.params[i];
    return param.learnable && param.lr_mult == 0 && param.filler.type() == "constant";
  };
  const auto counts = [&](int i) { return graph.params[i].filler.value() != 0; };
  return std::ranges::all_of(node.params, kept) && std::ranges::any_of(node.params, counts);
}

}  // namespace

std::vector<std::string> NeededWeights(const Net& net, const std::vector<std::string>& fresh) {
  const Graph& graph = net.compiled().graph;
  std::vector<std::string> needed;
  for (const Node& node : graph.nodes) {
    if (node.params.empty() || std::ranges::count(fresh, node.name()) == 0) continue;
    if (ComputesWithFillers(graph, node) || std::ranges::count(needed, node.name()) > 0) continue;
    needed.push_back(node.name());
  }
  return needed;
}

}  // namespace crema
