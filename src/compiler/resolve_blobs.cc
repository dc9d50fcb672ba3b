#include <algorithm>
#include <map>
#include <numeric>

#include "base/suggest.h"
#include "compiler/compiler.h"

namespace crema {

namespace {

std::string Field(const char* list, int i) { return std::string(list) + "[" + std::to_string(i) + "]"; }

// What to say of a blob that a layer would make whose rules leave it out; empty: there is none.
std::string MakerLeftOut(const Compilation& c, const std::string& blob) {
  const NetParameter& file = c.net.file.net;
  for (int i = 0; i < file.layer_size(); ++i) {
    const LayerParameter& layer = file.layer(i);
    if (std::find(layer.top().begin(), layer.top().end(), blob) == layer.top().end()) continue;
    const auto is_it = [i](const Node& node) { return node.index_in_file == i; };
    if (std::any_of(c.net.graph.nodes.begin(), c.net.graph.nodes.end(), is_it)) continue;
    return "; layer \"" + layer.name() +
           "\" does, but its include or exclude rules leave it out of this phase, level and " +
           "stages (level and stage in train_state or test_state, --level, --stage)";
  }
  return "";
}

}  // namespace

void ResolveBlobs(Compilation& c) {
  Graph& graph = c.net.graph;
  std::map<std::string, int> current;  // blob name -> value that holds it now
  std::map<std::string, int> layer_names;

  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    Node& node = graph.nodes[n];
    const LayerParameter& layer = *node.param;
    if (!layer_names.emplace(layer.name(), n).second) {
      c.diagnostics.Warning(c.Where(node, "name"), "two layers are named \"" + layer.name() +
                                                       "\"; weights files tell them apart by their order only");
    }
    for (int i = 0; i < layer.bottom_size(); ++i) {
      const auto found = current.find(layer.bottom(i));
      if (found == current.end()) {
        std::vector<std::string> names;
        for (const auto& entry : current) names.push_back(entry.first);
        const std::string left_out = MakerLeftOut(c, layer.bottom(i));
        c.diagnostics.Error(c.Where(node, Field("bottom", i)),
                            "layer \"" + layer.name() + "\" (" + layer.type() +
                                "): no layer before it makes a blob \"" + layer.bottom(i) + "\"" +
                                (left_out.empty() ? DidYouMean(layer.bottom(i), names) : left_out));
        // Goes on with a stand-in of unknown shape, so that only this mistake is reported.
        Value missing;
        missing.name = layer.bottom(i);
        graph.values.push_back(missing);
        current[layer.bottom(i)] = static_cast<int>(graph.values.size()) - 1;
      }
      const int value = current[layer.bottom(i)];
      graph.values[value].uses.push_back({n, i});
      node.bottoms.push_back(value);
    }
    for (int i = 0; i < layer.top_size(); ++i) {
      const std::string& name = layer.top(i);
      const auto found = current.find(name);
      Value value;
      value.name = name;
      value.producer = n;
      value.producer_top = i;
      if (found != current.end()) {
        const bool in_place = i < layer.bottom_size() && layer.bottom(i) == name;
        const int old_producer = graph.values[found->second].producer;
        if (!in_place && old_producer >= 0) {
          c.diagnostics.Error(c.Where(node, Field("top", i)),
                              "layer \"" + layer.name() + "\" makes blob \"" + name + "\", which layer \"" +
                                  graph.nodes[old_producer].name() + "\" makes already; rename one of the two tops");
        }
        value.version = graph.values[found->second].version + 1;
      }
      graph.values.push_back(value);
      node.tops.push_back(static_cast<int>(graph.values.size()) - 1);
      if (name != kAutomaticTop) current[name] = node.tops.back();
    }
    if (layer.loss_weight_size() > 0 && layer.loss_weight_size() != layer.top_size()) {
      c.diagnostics.Error(c.Where(node, "loss_weight"),
                          "layer \"" + layer.name() + "\" has " + std::to_string(layer.loss_weight_size()) +
                              " loss_weight(s) for " + std::to_string(layer.top_size()) + " top(s); give one each");
    }
    if (layer.propagate_down_size() > 0 && layer.propagate_down_size() != layer.bottom_size()) {
      c.diagnostics.Error(c.Where(node, "propagate_down"),
                          "layer \"" + layer.name() + "\" has " + std::to_string(layer.propagate_down_size()) +
                              " propagate_down value(s) for " + std::to_string(layer.bottom_size()) +
                              " bottom(s); give one each or none");
    }
  }
  graph.order.resize(graph.nodes.size());
  std::iota(graph.order.begin(), graph.order.end(), 0);
  for (const auto& [name, value] : current) {
    const auto& named = c.options.outputs;
    graph.values[value].is_output =
        named.empty() ? graph.values[value].uses.empty() : std::find(named.begin(), named.end(), name) != named.end();
    if (graph.values[value].is_output) graph.outputs.push_back(value);
  }
}

}  // namespace crema
