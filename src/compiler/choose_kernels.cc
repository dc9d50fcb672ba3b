#include "compiler/compiler.h"

namespace crema {

void ChooseKernels(Compilation& c) {
  Graph& graph = c.net.graph;
  const auto specs = [&](const std::vector<int>& values) {
    std::vector<TensorSpec> list;
    for (int v : values) list.push_back(graph.values[v].spec);
    return list;
  };
  for (Node& node : graph.nodes) {
    node.plan = std::make_unique<LayerPlan>(c.options.context, specs(node.bottoms), specs(node.tops), node.bottom_grads,
                                            node.param_grads);
    if (node.setup->is_view()) {
      node.plan->Chose("view");
    } else {
      node.layer->Plan(*node.plan);
    }
  }
}

}  // namespace crema
