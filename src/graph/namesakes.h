// Layers of one name, which nets may have: files of weights, and nets that borrow parameters, tell them apart by their
// order among those of the name that have parameters.
#ifndef CREMA_GRAPH_NAMESAKES_H_
#define CREMA_GRAPH_NAMESAKES_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace crema {

// Of a graph that must outlive it.
class Namesakes {
 public:
  explicit Namesakes(const Graph& graph);

  // How many layers of its name, with parameters, are before node `node`.
  int NumberOf(int node) const { return number_[node]; }
  // The layer with parameters that has this name and number; null without one.
  const Node* Find(const std::string& name, int number) const;

 private:
  const Graph& graph_;
  std::unordered_map<std::string_view, std::vector<int>> nodes_;  // those with parameters, by name
  std::vector<int> number_;
};

// For each parameter of `other` the one of `graph` that stands for it: a layer that uses it, the owner first, has that
// there under the same name and number. -1: there is none.
std::vector<int> MatchParameters(const Graph& graph, const Graph& other);

}  // namespace crema

#endif  // CREMA_GRAPH_NAMESAKES_H_
