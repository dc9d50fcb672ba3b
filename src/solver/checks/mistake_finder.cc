#include "solver/checks/mistake_finder.h"

#include <algorithm>

#include "graph/program.h"

namespace crema {

MistakeFinder::MistakeFinder(const TrainedNets& nets, std::vector<Diagnostic>* found)
    : nets_(nets), train_(nets.train), graph_(nets.train.compiled().graph), found_(found) {}

void MistakeFinder::Say(Severity severity, const Net& net, const Node* node, std::string message) {
  const CompiledNet& compiled = net.compiled();
  Location where;
  if (node && compiled.file.source) where = compiled.file.source->Layer(node->index_in_file);
  found_->push_back({severity, std::move(where), std::move(message)});
}

bool MistakeFinder::IsLoaded(const Node& node) const {
  const Node& owner = graph_.nodes[graph_.params[node.params[0]].owner];
  return nets_.loaded.contains(node.name()) || nets_.loaded.contains(owner.name());
}

bool MistakeFinder::ReachesLoss(const Node& node) const {
  return std::any_of(node.tops.begin(), node.tops.end(), [&](int top) { return graph_.values[top].reaches_loss; });
}

std::string MistakeFinder::Layer(const Node& node) {
  return "layer " + Quoted(node.name()) + " (" + node.type->name + ")";
}

const Node* MistakeFinder::MakerOf(const Graph& graph, int value) {
  const int producer = graph.values[value].producer;
  return producer < 0 ? nullptr : &graph.nodes[producer];
}

}  // namespace crema
