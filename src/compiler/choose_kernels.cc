#include "compiler/compiler.h"

namespace crema {

void ChooseKernels(Compilation& c) {
  Graph& graph = c.net.graph;
  const auto specs = [&](const Node& node, const std::vector<int>& values) {
    std::vector<TensorSpec> list;
    for (int v : values) list.push_back(node.Laid(graph.values[v].spec));
    return list;
  };
  for (int u : graph.order) {
    Node& node = graph.unit(u);
    node.plan = std::make_unique<LayerPlan>(c.options.context, specs(node, node.bottoms), specs(node, node.tops),
                                            node.bottom_grads, node.param_grads);
    node.plan->set_trains(c.options.backward);
    node.plan->set_multiplies_in_bfloat16(graph.bfloat16);
    if (node.setup->is_view()) {
      node.plan->Chose("view");
    } else {
      node.layer->Plan(*node.plan);
    }
  }
}

}  // namespace crema
