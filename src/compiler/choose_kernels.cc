#include <memory>
#include <optional>

#include "base/compute_threads.h"
#include "compiler/compiler.h"

namespace crema {

namespace {

std::vector<LayerPlan::LaidOut> LaidOut(const Graph& graph, const Node& node) {
  std::vector<LayerPlan::LaidOut> list;
  for (int p : node.params) {
    const GraphParam& param = graph.params[p];
    LayerPlan::LaidOut& one = list.emplace_back();
    one.may = param.may_lay_out;
    if (param.borrowed) one.given = param.layout;
  }
  return list;
}

void KeepLayouts(Compilation& c, const Node& node) {
  for (size_t i = 0; i < node.params.size(); ++i) {
    GraphParam& param = c.net.graph.params[node.params[i]];
    const LayerPlan::LaidOut laid_out = node.plan->laid_out(static_cast<int>(i));
    if (laid_out.kept) param.layout = laid_out.kept;
    if (!laid_out.given || laid_out.taken) continue;
    const Node& owner = c.net.graph.nodes[param.owner];
    c.diagnostics.Error(c.Where(owner), "layer \"" + node.name() + "\" (" + node.type_name() + ") cannot use blob " +
                                            std::to_string(param.owner_index) + " of layer \"" + owner.name() +
                                            "\" of the train net, which is kept there in a form (" +
                                            param.layout->name() +
                                            ") that this type does not read; make it a layer of the type it is in "
                                            "the train net, or give it parameters of its own by another name");
  }
}

}  // namespace

void ChooseKernels(Compilation& c) {
  Graph& graph = c.net.graph;
  const auto specs = [&](const Node& node, const std::vector<int>& values) {
    std::vector<TensorSpec> list;
    for (int v : values) list.push_back(node.Laid(graph.values[v].spec));
    return list;
  };
  const auto plan_for = [&](const Node& node) {
    auto plan = std::make_unique<LayerPlan>(c.options.context, specs(node, node.bottoms), specs(node, node.tops),
                                            node.bottom_grads, node.param_grads);
    plan->set_trains(c.options.backward);
    plan->set_factors(graph.factors);
    plan->set_laid_out(LaidOut(graph, node));
    return plan;
  };
  for (int u : graph.order) {
    Node& node = graph.unit(u);
    node.plan = plan_for(node);
    if (node.setup->is_view()) {
      node.plan->Chose("view");
      continue;
    }
    std::optional<ComputeThreads> alone;
    if (node.rows > 0) alone.emplace(1);  // as lanes compute
    node.layer->Plan(*node.plan);
    KeepLayouts(c, node);
    for (const std::unique_ptr<Layer>& other : node.other_lanes) {
      other->Plan(*plan_for(node));
      other->ShareWeights(*node.layer);
    }
  }
}

}  // namespace crema
