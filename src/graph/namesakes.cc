#include "graph/namesakes.h"

#include <algorithm>

namespace crema {

Namesakes::Namesakes(const Graph& graph) : graph_(graph), number_(graph.nodes.size()) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<int>& nodes = nodes_[graph.nodes[i].name()];
    number_[i] = static_cast<int>(nodes.size());
    if (!graph.nodes[i].params.empty()) nodes.push_back(static_cast<int>(i));
  }
}

const Node* Namesakes::Find(const std::string& name, int number) const {
  const auto found = nodes_.find(name);
  return found != nodes_.end() && number < std::ssize(found->second) ? &graph_.nodes[found->second[number]] : nullptr;
}

std::vector<int> MatchParameters(const Graph& graph, const Graph& other) {
  const Namesakes here(graph), there(other);
  std::vector<int> matches;
  for (int param = 0; param < std::ssize(other.params); ++param) {
    int& match = matches.emplace_back(-1);
    for (const int user : other.params[param].users) {
      const Node& reader = other.nodes[user];
      const Node* const node = here.Find(reader.name(), there.NumberOf(user));
      const auto blob = std::find(reader.params.begin(), reader.params.end(), param) - reader.params.begin();
      if (!node || blob >= std::ssize(node->params)) continue;
      match = node->params[blob];
      break;
    }
  }
  return matches;
}

}  // namespace crema
