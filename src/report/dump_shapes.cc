#include <ranges>

#include "base/byte_size.h"
#include "base/listed.h"
#include "base/number_text.h"
#include "base/text_table.h"
#include "report/dump.h"

namespace crema {

namespace {

std::string Tops(const Graph& graph, const Node& node) {
  const auto top = [&](int v) { return graph.values[v].name + " " + graph.values[v].spec.shape.ToString(); };
  return Listed(node.tops | std::views::transform(top), {.most = kAllNames});
}

// Those that are its own, so that the rows add up to the total.
std::string Params(const Graph& graph, const Node& node) {
  int64_t own = 0;
  for (int p : node.params) {
    const GraphParam& param = graph.params[p];
    if (&graph.nodes[param.owner] == &node) own += param.spec.shape.count();
  }
  return own > 0 ? FormatCount(own) : node.params.empty() ? "" : "shared";
}

size_t TopBytes(const Graph& graph, const Node& node) {
  size_t bytes = 0;
  if (node.setup->is_view()) return bytes;
  for (int v : node.tops) bytes += graph.values[v].spec.bytes();
  return bytes;
}

}  // namespace

std::string DumpShapes(const CompiledNet& net) {
  const Graph& graph = net.graph;
  TextTable table({"layer", "type", "tops", ">parameters", ">operations", ">activations"});
  double flops = 0;
  size_t activations = 0;
  for (const Node& node : graph.nodes) {
    const size_t bytes = TopBytes(graph, node);
    flops += node.setup->flops();
    activations += bytes;
    table.AddRow({node.name(), node.type->name, Tops(graph, node), Params(graph, node),
                  node.setup->flops() > 0 ? FormatScaled(node.setup->flops()) : "",
                  bytes > 0               ? FormatBytes(bytes)
                  : node.setup->is_view() ? "view"
                                          : ""});
  }
  table.AddRule();
  table.AddRow({"total", "", "", FormatCount(LearnableCount(graph)), FormatScaled(flops), FormatBytes(activations)});

  std::string text = NetTitle(net) + "\n";
  for (const auto& [name, shape] : net.assumed_shapes) text += "assumed: " + name + " " + shape.ToString() + "\n";
  text += "\n" + table.ToString();
  size_t param_bytes = 0, grad_bytes = 0;
  for (const GraphParam& param : graph.params) param_bytes += param.stored().bytes();
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.params.size(); ++i) {
      const GraphParam& param = graph.params[node.params[i]];
      if (node.param_grads[i] && &graph.nodes[param.owner] == &node) grad_bytes += param.stored().bytes();
    }
  }
  text += "\nparameters  " + FormatBytes(param_bytes);
  if (grad_bytes > 0) text += ", their gradients " + FormatBytes(grad_bytes);
  text += "\narena       " + FormatBytes(net.program.arena_bytes) + " for activations" +
          (net.program.backward.empty() ? "" : ", gradients") + " and scratch; " +
          FormatBytes(net.program.unshared_bytes) + " if no two tensors shared memory\n" +
          "operations  of one forward pass of the whole batch; a multiply-add counts as two\n";
  return text;
}

}  // namespace crema
