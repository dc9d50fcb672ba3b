#include <algorithm>

#include "base/check.h"
#include "compiler/compiler.h"
#include "crema/fusion.h"

namespace crema {

namespace {

class Fuser {
 public:
  explicit Fuser(Compilation& c) : c_(c), graph_(c.net.graph), taken_(graph_.nodes.size(), false) {}

  void Run() {
    if (c_.options.backward) {
      for (int n = 0; n < graph_.size(); ++n) {
        for (const Fusion* fusion : Fusions()) {
          if (fusion->gathers && Gather(n, *fusion)) break;
        }
      }
    }
    for (int n = 0; n < graph_.size(); ++n) {
      if (!taken_[n]) FuseFrom(n);
    }
    // A group runs where its last member stood: all it reads is there by then.
    std::vector<int> ended(graph_.nodes.size(), -1);  // by node: the group
    for (size_t f = 0; f < graph_.fused.size(); ++f) ended[graph_.fused[f].members.back()] = static_cast<int>(f);
    graph_.order.clear();
    for (int n = 0; n < graph_.size(); ++n) {
      if (!taken_[n]) graph_.order.push_back(n);
      if (ended[n] >= 0) graph_.order.push_back(graph_.size() + ended[n]);
    }
  }

 private:
  using Members = std::vector<int>;
  // The longest of a fusion's types that begins at a node.
  struct Chain {
    const Fusion* fusion;
    Members members;
    std::vector<const LayerSetup*> setups;
  };
  struct Refusal {
    Members chain;
    std::string reason;
  };

  // Fuses `n` with what makes its bottoms if that is how `fusion` gathers.
  bool Gather(int n, const Fusion& fusion) {
    const Node& node = graph_.nodes[n];
    if (!fusion.Takes(1, node.type->name) || !CanBeMember(n) || !node.runs_backward) return false;
    Members members;
    for (int v : node.bottoms) {
      const int maker = graph_.values[v].producer;
      const Node& from = graph_.nodes[maker];
      if (!fusion.Takes(0, from.type->name) || !CanBeMember(maker) || taken_[maker] || from.tops.size() != 1 ||
          !WhyNotJoined(maker, graph_.values[v], n).empty()) {
        return false;
      }
      members.push_back(maker);
    }
    members.push_back(n);
    std::string why_not;
    if (!Accepts(fusion, SetupsOf(members), &why_not)) return false;
    Take(members, fusion);
    return true;
  }

  // The longest chain that begins at `n` and is accepted; among equally long ones that of the first fusion.
  void FuseFrom(int n) {
    std::vector<Chain> chains;
    std::vector<Refusal> refusals;
    size_t longest = 0;
    for (const Fusion* fusion : Fusions()) {
      if (fusion->gathers || (fusion->inference_only && c_.options.backward)) continue;
      Members members = LongestChain(n, *fusion, &refusals);
      if (members.size() < fusion->types.size()) continue;
      longest = std::max(longest, members.size());
      std::vector<const LayerSetup*> setups = SetupsOf(members);
      chains.push_back({fusion, std::move(members), std::move(setups)});
    }
    size_t fused = 0;
    for (size_t length = longest; length > 0 && fused == 0; --length) {
      for (const Chain& chain : chains) {
        if (chain.members.size() < length || chain.fusion->types.size() > length) continue;
        const Members members(chain.members.begin(), chain.members.begin() + length);
        std::string why_not;
        if (Accepts(*chain.fusion, std::span(chain.setups).first(length), &why_not)) {
          Take(members, *chain.fusion);
          fused = length;
          break;
        }
        refusals.push_back({members, std::move(why_not)});
      }
    }
    Note(refusals, fused);
  }

  std::vector<const LayerSetup*> SetupsOf(const Members& members) const {
    std::vector<const LayerSetup*> setups;
    for (int member : members) setups.push_back(graph_.nodes[member].setup.get());
    return setups;
  }

  static bool Accepts(const Fusion& fusion, std::span<const LayerSetup* const> members, std::string* why_not) {
    return fusion.accepts == nullptr || fusion.accepts(members, why_not);
  }

  void Take(const Members& members, const Fusion& fusion) {
    graph_.fused.push_back(Fuse(members, fusion));
    for (int member : members) taken_[member] = true;
  }

  // What was refused although the types fit: of each reason the longest chain, if it is longer than what was fused.
  void Note(std::vector<Refusal>& refusals, size_t fused) {
    std::stable_sort(refusals.begin(), refusals.end(),
                     [](const Refusal& a, const Refusal& b) { return a.chain.size() > b.chain.size(); });
    std::vector<std::string> noted;
    for (const Refusal& refusal : refusals) {
      if (refusal.chain.size() <= fused) continue;
      if (std::find(noted.begin(), noted.end(), refusal.reason) != noted.end()) continue;
      noted.push_back(refusal.reason);
      std::string names, types;
      for (int member : refusal.chain) {
        names += (names.empty() ? "" : "+") + graph_.nodes[member].name();
        types += (types.empty() ? "" : "+") + graph_.nodes[member].type->name;
      }
      graph_.fusion_notes.push_back(names + " (" + types + "): " + refusal.reason);
    }
  }

  // The chain of the fusion's types that begins at `n`; shorter where the net has another. Where the next layer has the
  // wanted type and yet cannot be a member, *refusals tells why.
  Members LongestChain(int n, const Fusion& fusion, std::vector<Refusal>* refusals) const {
    Members chain;
    if (!fusion.Takes(0, graph_.nodes[n].type->name) || !CanBeMember(n)) return chain;
    chain.push_back(n);
    while (true) {
      const int last = chain.back();
      if (graph_.nodes[last].tops.size() != 1) break;
      const Value& top = graph_.values[graph_.nodes[last].tops[0]];
      const auto next = std::find_if(top.uses.begin(), top.uses.end(), [&](const Value::Use& use) {
        return !taken_[use.node] && fusion.Takes(chain.size(), graph_.nodes[use.node].type->name) &&
               CanBeMember(use.node);
      });
      if (next == top.uses.end() || (fusion.onto_addend && ReadsLaterValues(next->node, last, n))) break;
      std::string reason = WhyNotJoined(last, top, next->node);
      if (reason.empty() && fusion.repeats() && chain.size() >= static_cast<size_t>(fusion.most_members)) {
        reason = "more than " + std::to_string(fusion.most_members) + " layers in one pass";
      }
      chain.push_back(next->node);
      if (reason.empty()) continue;
      refusals->push_back({chain, reason});
      chain.pop_back();
      break;
    }
    return chain;
  }

  // Whether `node` reads, beside what `last` makes, what is not there yet when `first` runs.
  bool ReadsLaterValues(int node, int last, int first) const {
    return std::any_of(graph_.nodes[node].bottoms.begin(), graph_.nodes[node].bottoms.end(),
                       [&](int v) { return graph_.values[v].producer != last && graph_.values[v].producer > first; });
  }

  bool CanBeMember(int n) const {
    const LayerSetup& setup = *graph_.nodes[n].setup;
    return !setup.is_view() && !setup.is_source();
  }

  // Why `top`, which `last` makes and `next` reads, must be there for others to see; empty where it need not.
  std::string WhyNotJoined(int last, const Value& top, int next) const {
    const std::string quoted = "\"" + top.label() + "\"";
    if (graph_.nodes[last].loss_weights[0] != 0) return quoted + " is a loss";
    if (top.is_output) return quoted + " is an output";
    for (const Value::Use& use : top.uses) {
      if (use.node != next) return quoted + " is also read by \"" + graph_.nodes[use.node].name() + "\"";
    }
    if (top.uses.size() > 1) return quoted + " is read twice";
    // A Dropout may be of another phase than its net.
    if (graph_.nodes[last].phase != graph_.nodes[next].phase) {
      return "\"" + graph_.nodes[last].name() + "\" has another phase than \"" + graph_.nodes[next].name() + "\"";
    }
    for (int n : {last, next}) {
      if (graph_.nodes[n].param->propagate_down_size() > 0) {
        return "\"" + graph_.nodes[n].name() + "\" has propagate_down";
      }
    }
    return {};
  }

  Node Fuse(const std::vector<int>& chain, const Fusion& fusion) const {
    const Node& last = graph_.nodes[chain.back()];
    const Node& head = fusion.gathers ? last : graph_.nodes[chain.front()];
    Node group;
    group.index_in_file = head.index_in_file;
    group.param = head.param;
    group.type = head.type;
    group.phase = head.phase;
    group.members = chain;
    group.tops = last.tops;
    group.loss_weights = last.loss_weights;
    std::vector<const LayerParameter*> params;
    std::vector<TensorSpec> specs;
    std::vector<int> inner;
    for (int member : chain) {
      const Node& node = graph_.nodes[member];
      const char* plus = params.empty() ? "" : "+";
      group.fused_name += plus + node.name();
      group.fused_type += plus + node.type->name;
      params.push_back(node.param);
      const bool in_front = fusion.onto_addend && !group.bottoms.empty();
      size_t at = in_front ? 0 : group.bottoms.size();
      for (size_t i = 0; i < node.bottoms.size(); ++i) {
        if (std::find(inner.begin(), inner.end(), node.bottoms[i]) != inner.end()) continue;
        group.bottoms.insert(group.bottoms.begin() + at, node.bottoms[i]);
        group.bottom_grads.insert(group.bottom_grads.begin() + at, node.bottom_grads[i]);
        specs.insert(specs.begin() + at, graph_.values[node.bottoms[i]].spec);
        ++at;
      }
      group.params.insert(group.params.end(), node.params.begin(), node.params.end());
      group.param_grads.insert(group.param_grads.end(), node.param_grads.begin(), node.param_grads.end());
      group.runs_backward |= node.runs_backward;
      inner.push_back(node.tops[0]);
    }
    group.layer = fusion.create();
    group.create = fusion.create;
    Compilation& c = c_;
    const Node* at = &head;
    group.setup = std::make_unique<LayerSetup>(*head.param, head.phase, std::move(specs),
                                               [&c, at](std::string_view field) { return c.Where(*at, field); });
    group.setup->set_members(std::move(params), chain);
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
