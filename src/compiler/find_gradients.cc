#include <algorithm>

#include "compiler/compiler.h"

namespace crema {

namespace {

bool Any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

// Of a loss the other tops are only reports: what becomes of them has no gradient.
size_t DifferentiableTops(const Node& node) {
  if (!node.setup->is_differentiable()) return 0;
  return node.setup->is_loss() ? std::min<size_t>(1, node.tops.size()) : node.tops.size();
}

// Whether the gradient may pass from `node` to its bottom `i`.
bool Passes(const Node& node, int i) {
  if (!node.setup->is_differentiable() || !node.setup->has_gradient(i)) return false;
  return node.param->propagate_down_size() == 0 || node.param->propagate_down(i);
}

// Caffe stops there.
void WarnOfLostGradient(Compilation& c, const Node& node, size_t i) {
  const Value& bottom = c.net.graph.values[node.bottoms[i]];
  const auto& propagate = node.param->propagate_down();
  const bool wanted = bottom.needs_grad && (propagate.empty() || propagate.Get(static_cast<int>(i)));
  if (!wanted || !node.setup->is_loss() || node.setup->has_gradient(static_cast<int>(i))) return;
  c.diagnostics.Warning(c.Where(node, "bottom"),
                        "layer \"" + node.name() + "\" (" + node.type->name + ") has no gradient for \"" + bottom.name +
                            "\": what is below it learns nothing from this loss; exchange the bottoms if they are the "
                            "wrong way round, or say propagate_down: false for this one");
}

}  // namespace

void FindGradients(Compilation& c) {
  Graph& graph = c.net.graph;
  const bool force = c.options.force_backward || c.net.file.net.force_backward();
  for (Node& node : graph.nodes) {
    node.bottom_grads.assign(node.bottoms.size(), false);
    node.param_grads.assign(node.params.size(), false);
  }
  if (!c.options.backward) return;

  // Upwards: where is there something to learn below?
  for (Node& node : graph.nodes) {
    bool below = force && node.setup->is_source();
    for (int p : node.params) below |= graph.params[p].wants_grad();
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      Value& bottom = graph.values[node.bottoms[i]];
      if (node.param->propagate_down_size() > 0 && node.param->propagate_down(i)) bottom.needs_grad = true;
      below |= bottom.needs_grad && Passes(node, i);
      WarnOfLostGradient(c, node, i);
    }
    for (size_t i = 0; i < node.tops.size(); ++i) {
      graph.values[node.tops[i]].needs_grad = below && i < DifferentiableTops(node);
    }
  }

  // Downwards: where does a loss depend on it?
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    bool above = false;
    for (size_t i = 0; i < node->tops.size(); ++i) {
      Value& top = graph.values[node->tops[i]];
      top.reaches_loss |= node->loss_weights[i] != 0;
      above |= top.reaches_loss && i < DifferentiableTops(*node);
    }
    for (size_t i = 0; i < node->bottoms.size(); ++i) {
      if (above && Passes(*node, i)) graph.values[node->bottoms[i]].reaches_loss = true;
    }
    if (!above) continue;
    for (size_t i = 0; i < node->bottoms.size(); ++i) {
      node->bottom_grads[i] = graph.values[node->bottoms[i]].needs_grad && Passes(*node, i);
    }
    for (size_t i = 0; i < node->params.size(); ++i) node->param_grads[i] = graph.params[node->params[i]].wants_grad();
    node->runs_backward = Any(node->bottom_grads) || Any(node->param_grads);
  }
}

}  // namespace crema
