#include <algorithm>

#include "report/assumed_inputs.h"
#include "report/dump.h"
#include "report/json_writer.h"

namespace crema {

void WriteNetJson(const CompiledNet& net, JsonWriter& json) {
  const Graph& graph = net.graph;
  json.Field("name", graph.name);
  json.Field("phase", Phase_Name(graph.phase));
  json.Key("assume");
  json.BeginObject();
  for (const auto& [name, shape] : net.assumed_shapes) {
    json.Field(name, shape);
  }
  json.EndObject();
  json.NewLine(1);
  json.Key("layers");
  json.BeginArray();
  for (const Node& node : graph.nodes) {
    json.NewLine(2);
    json.BeginObject();
    json.Field("name", node.name());
    json.Field("type", ReadsData(*node.param) ? "Input" : node.type->name);
    json.Key("tops");
    json.BeginArray();
    for (int v : node.tops) {
      json.BeginArray();
      json.String(graph.values[v].name);
      json.Extents(graph.values[v].spec.shape);
      json.EndArray();
    }
    json.EndArray();
    json.Key("params");
    json.BeginArray();
    for (int p : node.params) json.Extents(graph.params[p].spec.shape);
    json.EndArray();
    const auto laid_out = [&](int p) { return graph.params[p].layout != nullptr; };
    if (std::any_of(node.params.begin(), node.params.end(), laid_out)) {
      json.Key("param_layouts");
      json.BeginArray();
      for (int p : node.params) json.String(laid_out(p) ? graph.params[p].layout->name() : "plain");
      json.EndArray();
    }
    json.EndObject();
  }
  json.NewLine(1);
  json.EndArray();
  json.NewLine(1);
  json.Field("param_count", ParamCount(graph));
  json.Field("learnable_count", LearnableCount(graph));
  json.Key("outputs");
  json.BeginArray();
  for (int v : graph.outputs) json.String(graph.values[v].name);
  json.EndArray();
}

std::string DumpJson(const CompiledNet& net) {
  JsonWriter json;
  json.BeginObject();
  WriteNetJson(net, json);
  json.NewLine(0);
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace crema
