#include "onnx/value_names.h"

#include <algorithm>
#include <map>
#include <set>

namespace crema::onnx {

namespace {

bool IsOutput(const Graph& graph, int value) {
  return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
}

// For each value the one that it is the same as.
std::vector<int> FindRoots(const Graph& graph) {
  std::vector<int> roots(graph.values.size());
  for (size_t v = 0; v < roots.size(); ++v) {
    const Value& value = graph.values[v];
    const Node& producer = graph.nodes[value.producer];
    roots[v] = static_cast<int>(v);
    if (!PassesThrough(producer)) continue;
    const int root = roots[producer.bottoms[0]];
    const bool renamed = value.name != graph.values[root].name || IsInput(graph.nodes[graph.values[root].producer]);
    if (!renamed || !IsOutput(graph, static_cast<int>(v))) roots[v] = root;
  }
  return roots;
}

}  // namespace

bool PassesThrough(const Node& node) {
  const std::string& type = node.type->name;
  return type == "Split" || type == "GradientScaler" ||
         (type == "Dropout" && node.param->dropout_param().scale_train());
}

bool IsInput(const Node& node) { return node.type->name == "Input" || node.type->name == "MemoryData"; }

std::vector<std::string> NameValues(const Graph& graph) {
  const std::vector<int> roots = FindRoots(graph);
  std::map<std::string, int> owner;  // of each blob's name: a root
  for (size_t v = 0; v < roots.size(); ++v) owner[graph.values[v].name] = roots[v];
  for (size_t v = 0; v < roots.size(); ++v) {
    const Value& value = graph.values[v];
    if (IsInput(graph.nodes[value.producer])) owner[value.name] = static_cast<int>(v);
  }
  std::vector<std::string> names(roots.size());
  std::set<std::string> taken;
  // Its own name before that of a copy.
  for (const bool own : {true, false}) {
    for (const auto& [name, root] : owner) {
      if (!names[root].empty() || (graph.values[root].name == name) != own) continue;
      names[root] = name;
      taken.insert(name);
    }
  }
  for (size_t v = 0; v < roots.size(); ++v) {
    if (!names[v].empty()) continue;
    names[v] = names[roots[v]];
    if (roots[v] != static_cast<int>(v)) continue;
    const std::string stem = graph.values[v].name + ":" + graph.nodes[graph.values[v].producer].name();
    names[v] = stem;
    for (int i = 2; !taken.insert(names[v]).second; ++i) names[v] = stem + "_" + std::to_string(i);
  }
  return names;
}

}  // namespace crema::onnx
