#include "report/dump.h"

namespace crema {

namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// What a layer does to its data, as a colour.
const char* Colour(const Node& node) {
  if (node.setup->is_source()) return "#cfe8fc";           // data
  if (node.setup->is_loss()) return "#f9c6c6";             // loss
  if (!node.setup->is_differentiable()) return "#e4d7f5";  // measures
  if (!node.params.empty()) return "#fde2b8";              // learns
  if (node.setup->is_view()) return "#eeeeee";             // rearranges only
  return node.setup->in_place() ? "#d6f0d2" : "#fbf6c4";   // elementwise, the rest
}

}  // namespace

std::string DumpDot(const CompiledNet& net) {
  const Graph& graph = net.graph;
  std::string text = "digraph " + Quoted(graph.name) + " {\n";
  text += "  rankdir=BT;\n  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=11];\n";
  text += "  edge [fontname=\"sans-serif\", fontsize=9];\n";
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    std::string label = node.name() + "\n" + node.type->name;
    for (int p : node.params) label += "\n" + graph.params[p].spec.shape.ToString();
    text += "  n" + std::to_string(n) + " [label=" + Quoted(label) + ", fillcolor=\"" + Colour(node) + "\"];\n";
  }
  for (const Value& value : graph.values) {
    const std::string label = Quoted(value.label() + "\n" + value.spec.shape.ToString());
    for (const Value::Use& use : value.uses) {
      text += "  n" + std::to_string(value.producer) + " -> n" + std::to_string(use.node) + " [label=" + label + "];\n";
    }
  }
  for (int v : graph.outputs) {
    const Value& value = graph.values[v];
    const std::string id = "o" + std::to_string(v);
    text += "  " + id + " [label=" + Quoted(value.label() + "\n" + value.spec.shape.ToString()) +
            ", shape=plain, style=\"\"];\n";
    text += "  n" + std::to_string(value.producer) + " -> " + id + ";\n";
  }
  return text + "}\n";
}

}  // namespace crema
