#include "base/check.h"
#include "compiler/compiler.h"

namespace crema {

namespace {

class Fuser {
 public:
  explicit Fuser(Compilation& c) : c_(c), graph_(c.net.graph), taken_(graph_.nodes.size(), false) {}

  void Run() {
    for (int n = 0; n < graph_.size(); ++n) {
      if (taken_[n]) continue;
      for (const Fusion* fusion : Fusions()) {
        if (TryFuse(n, *fusion)) break;
      }
    }
    graph_.order.clear();
    for (int n = 0; n < graph_.size(); ++n) {
      if (!taken_[n]) graph_.order.push_back(n);
      // A group runs where its last member stood: all it reads is there by then.
      for (size_t f = 0; f < graph_.fused.size(); ++f) {
        if (graph_.fused[f].members.back() == n) graph_.order.push_back(graph_.size() + static_cast<int>(f));
      }
    }
  }

 private:
  // The chain of the fusion's types that begins at `n`; shorter where the net has another.
  std::vector<int> Chain(int n, const Fusion& fusion) const {
    std::vector<int> chain;
    for (const std::string& type : fusion.types) {
      if (!chain.empty()) n = Next(chain.back());
      if (n < 0 || taken_[n] || graph_.nodes[n].type->name != type) break;
      chain.push_back(n);
    }
    return chain;
  }

  // The one layer that reads the only top of `n`, which nobody else needs; -1 if there is none.
  int Next(int n) const {
    const Node& node = graph_.nodes[n];
    if (node.tops.size() != 1 || node.loss_weights[0] != 0) return -1;
    const Value& top = graph_.values[node.tops[0]];
    return top.uses.size() == 1 ? top.uses[0].node : -1;
  }

  bool TryFuse(int n, const Fusion& fusion) {
    if (fusion.inference_only && c_.options.backward) return false;
    const std::vector<int> chain = Chain(n, fusion);
    if (chain.size() < fusion.types.size()) return false;
    std::vector<const LayerSetup*> setups;
    for (int member : chain) {
      const Node& node = graph_.nodes[member];
      if (node.setup->is_view() || node.setup->is_source() || node.param->propagate_down_size() > 0) return false;
      setups.push_back(node.setup.get());
    }
    std::string why_not;
    if (!fusion.accepts(setups, &why_not)) return false;
    graph_.fused.push_back(Fuse(chain, fusion));
    for (int member : chain) taken_[member] = true;
    return true;
  }

  Node Fuse(const std::vector<int>& chain, const Fusion& fusion) const {
    const Node &first = graph_.nodes[chain.front()], &last = graph_.nodes[chain.back()];
    Node group;
    group.index_in_file = first.index_in_file;
    group.param = first.param;
    group.type = first.type;
    group.phase = first.phase;
    group.members = chain;
    group.tops = last.tops;
    group.loss_weights = last.loss_weights;
    std::vector<const LayerParameter*> params;
    std::vector<TensorSpec> specs;
    int inner = -1;
    for (int member : chain) {
      const Node& node = graph_.nodes[member];
      const char* plus = params.empty() ? "" : "+";
      group.fused_name += plus + node.name();
      group.fused_type += plus + node.type->name;
      params.push_back(node.param);
      for (size_t i = 0; i < node.bottoms.size(); ++i) {
        if (node.bottoms[i] == inner) continue;
        group.bottoms.push_back(node.bottoms[i]);
        group.bottom_grads.push_back(node.bottom_grads[i]);
        specs.push_back(graph_.values[node.bottoms[i]].spec);
      }
      group.params.insert(group.params.end(), node.params.begin(), node.params.end());
      group.param_grads.insert(group.param_grads.end(), node.param_grads.begin(), node.param_grads.end());
      group.runs_backward |= node.runs_backward;
      inner = node.tops[0];
    }
    group.layer = fusion.create();
    Compilation& c = c_;
    const Node* at = &first;
    group.setup = std::make_unique<LayerSetup>(*first.param, first.phase, std::move(specs),
                                               [&c, at](std::string_view field) { return c.Where(*at, field); });
    group.setup->set_members(std::move(params));
    group.layer->Setup(*group.setup);
    CREMA_CHECK(group.setup->params().size() == group.params.size()) << group.fused_type << " forgot parameters";
    CREMA_CHECK(group.setup->top_specs()[0] == graph_.values[group.tops[0]].spec) << group.fused_type;
    return group;
  }

  Compilation& c_;
  Graph& graph_;
  std::vector<bool> taken_;
};

}  // namespace

void FuseLayers(Compilation& c) {
  // Who wants to see every value wants those inside a group, too.
  if (!c.options.keep_all) Fuser(c).Run();
}

}  // namespace crema
