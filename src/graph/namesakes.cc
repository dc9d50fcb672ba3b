#include "graph/namesakes.h"

#include <algorithm>

namespace crema {

int NumberOf(const Graph& graph, int node) {
  const auto end = graph.nodes.begin() + node;
  return static_cast<int>(std::count_if(graph.nodes.begin(), end, [&](const Node& before) {
    return !before.params.empty() && before.name() == end->name();
  }));
}

const Node* FindNumbered(const Graph& graph, const std::string& name, int number) {
  for (const Node& node : graph.nodes) {
    if (!node.params.empty() && node.name() == name && number-- == 0) return &node;
  }
  return nullptr;
}

int FindParameter(const Graph& graph, const Graph& other, int param) {
  for (const int user : other.params[param].users) {
    const Node& there = other.nodes[user];
    const Node* const here = FindNumbered(graph, there.name(), NumberOf(other, user));
    const auto blob = std::find(there.params.begin(), there.params.end(), param) - there.params.begin();
    if (here && blob < std::ssize(here->params)) return here->params[blob];
  }
  return -1;
}

}  // namespace crema
