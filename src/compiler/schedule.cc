#include <algorithm>

#include "compiler/compiler.h"

namespace crema {

namespace {

class Scheduler {
 public:
  explicit Scheduler(Compilation& c)
      : c_(c),
        graph_(c.net.graph),
        program_(c.net.program),
        first_(graph_),
        again_(graph_),
        maker_(graph_.values.size(), -1) {}

  void Run() {
    const size_t values = graph_.values.size();
    contributions_.resize(values);
    program_.value_grad.assign(values, Step::kAbsent);
    for (size_t v = 0; v < values; ++v) {
      const Value& value = graph_.values[v];
      program_.value_tensor.push_back(first_.own[v] = NewTensor(value.label(), value.spec));
    }
    for (const BatchPart& part : graph_.parts) program_.parts.push_back({0, 0, part.rows, part.turns, part.lanes});
    size_t next = 0;
    for (int at = 0; at < static_cast<int>(graph_.order.size()); ++at) {
      if (next < graph_.parts.size() && graph_.parts[next].begin == at) BeginPart(static_cast<int>(next));
      Forward(graph_.order[at]);
      if (next < graph_.parts.size() && graph_.parts[next].end == at + 1) EndPart(static_cast<int>(next++));
    }
    if (!c_.options.backward) return;
    FindUsers();
    for (auto u = graph_.order.rbegin(); u != graph_.order.rend(); ++u) Backward(*u);
  }

 private:
  // What one run of the layers leaves, in the order of the graph's values and units.
  struct Results {
    explicit Results(const Graph& graph)
        : own(graph.values.size(), Step::kAbsent),
          reordered(graph.values.size()),
          saved(graph.nodes.size() + graph.fused.size()),
          steps(saved.size(), false) {}

    std::vector<int> own;                     // of a value: as its producer writes it
    std::vector<std::vector<int>> reordered;  // of a value: in other layouts and types
    std::vector<std::vector<int>> saved;      // of a unit
    std::vector<bool> steps;                  // whether a unit has run
  };

  int NewTensor(std::string name, TensorSpec spec, int part = -1) {
    program_.tensors.push_back({std::move(name), std::move(spec), -1, part});
    same_memory_.push_back(static_cast<int>(same_memory_.size()));
    pending_.push_back(0);
    return same_memory_.back();
  }

  // `view` is the memory of `tensor`.
  void Alias(int tensor, int view) {
    program_.aliases.emplace_back(tensor, view);
    same_memory_[view] = same_memory_[tensor];
  }

  int Workspace(const Node& node, size_t bytes) {
    if (bytes == 0) return Step::kAbsent;
    return NewTensor(node.name() + " workspace", {Shape{static_cast<int64_t>(bytes)}, DType::kU8}, part_);
  }

  // `tensor` as `wanted`, which differs in layout or type: written by a step, or the same memory where only the layout
  // differs, and that in name only.
  int Reorder(int tensor, const TensorSpec& wanted, std::vector<Step>& steps) {
    const TensorSpec& spec = program_.tensors[tensor].spec;
    const std::string suffix = wanted.dtype != spec.dtype        ? std::string(" (") + Name(wanted.dtype) + ")"
                               : wanted.layout == Layout::kPlain ? " (plain)"
                                                                 : " (channels last)";
    const bool same_memory = wanted.dtype == spec.dtype && (spec.shape[1] == 1 || spec.shape.count(2) == 1);
    if (same_memory) {
      const int view = NewTensor(program_.tensors[tensor].name + suffix, spec, program_.tensors[tensor].part);
      program_.tensors[view].spec.layout = wanted.layout;
      Alias(tensor, view);
      return view;
    }
    const int reordered =
        NewTensor(program_.tensors[tensor].name + suffix, wanted, IsOfTurn(wanted, tensor) ? part_ : -1);
    Step step;
    step.kind = StepKind::kReorder;
    step.bottoms = {tensor};
    step.tops = {reordered};
    step.part = part_;
    steps.push_back(std::move(step));
    return reordered;
  }

  // Where a unit's results are while `steps` are being added to; they are made again where they were not kept.
  Results& ResultsOf(int unit, std::vector<Step>& steps) {
    if (&steps == &program_.forward || !graph_.unit(unit).recompute) return first_;
    if (!again_.steps[unit]) RunUnit(unit, again_, steps);
    return again_;
  }

  // Whether `wanted` holds the items of one turn, of those of `tensor`.
  bool IsOfTurn(const TensorSpec& wanted, int tensor) const {
    return part_ >= 0 &&
           (program_.tensors[tensor].part == part_ || wanted.shape != program_.tensors[tensor].spec.shape);
  }

  // Whether a step that is added now may read what it wants from `tensor`: what other parts made for their turns is
  // gone.
  bool Serves(int tensor, TensorSpec wanted) const {
    const PlannedTensor& planned = program_.tensors[tensor];
    if (planned.part >= 0 && planned.part != part_) return false;
    if (planned.part < 0 && part_ >= 0) wanted.shape = planned.spec.shape;
    return planned.spec == wanted;
  }

  // The tensor of a value as its reader wants it.
  int TensorAs(int v, const TensorSpec& wanted, std::vector<Step>& steps) {
    Results& results = ResultsOf(maker_[v], steps);
    if (Serves(results.own[v], wanted)) return results.own[v];
    for (int other : results.reordered[v]) {
      if (Serves(other, wanted)) return other;
    }
    results.reordered[v].push_back(Reorder(results.own[v], wanted, steps));
    return results.reordered[v].back();
  }

  int TensorFor(const Node& node, int v, std::vector<Step>& steps) {
    TensorSpec wanted = node.Laid(graph_.values[v].spec);
    // A view that others see holds all items.
    if (node.setup->is_view() && program_.tensors[first_.own[node.tops[0]]].part < 0) {
      wanted.shape = graph_.values[v].spec.shape;
    }
    return TensorAs(v, wanted, steps);
  }

  void BeginPart(int p) {
    part_ = p;
    program_.parts[p].begin = static_cast<int>(program_.forward.size());
    for (int v : graph_.parts[p].inner) {
      PlannedTensor& tensor = program_.tensors[first_.own[v]];
      tensor.spec.shape.set(0, graph_.parts[p].rows);
      tensor.part = p;
    }
  }

  void EndPart(int p) {
    program_.parts[p].end = static_cast<int>(program_.forward.size());
    part_ = -1;
  }

  // As users see it.
  static TensorSpec Shown(TensorSpec spec) {
    if (IsImage(spec)) spec = {spec.shape, DType::kF32, Layout::kPlain};
    return spec;
  }

  // What `node` leaves for the gradient of its bottom.
  void Contribute(int v, int grad) {
    const TensorSpec& own = graph_.values[v].spec;
    if (program_.tensors[grad].spec != own) grad = Reorder(grad, own, program_.backward);
    Pend(v, grad);
  }

  void Pend(int v, int grad) {
    contributions_[v].push_back(grad);
    ++pending_[same_memory_[grad]];
  }

  void RunUnit(int u, Results& results, std::vector<Step>& steps) {
    const Node& node = graph_.unit(u);
    const char* const suffix = &results == &again_ ? " again" : "";
    results.steps[u] = true;
    std::vector<int> bottoms(node.bottoms.size(), Step::kAbsent);
    for (size_t i = 0; i < bottoms.size() && !node.setup->is_source(); ++i) {
      bottoms[i] = TensorFor(node, node.bottoms[i], steps);
    }
    for (int v : node.tops) {
      if (results.own[v] < 0) results.own[v] = NewTensor(graph_.values[v].label() + suffix, graph_.values[v].spec);
    }
    for (size_t i = 0; i < node.plan->saved().size(); ++i) {
      const std::string name = node.name() + " saved " + std::to_string(i) + suffix;
      results.saved[u].push_back(NewTensor(name, node.plan->saved()[i], part_));
    }
    if (node.setup->is_view()) {
      for (int v : node.tops) Alias(bottoms[0], results.own[v]);
      return;
    }
    Step step;
    step.kind = StepKind::kForward;
    step.node = u;
    step.part = part_;
    step.bottoms = std::move(bottoms);
    for (int v : node.tops) step.tops.push_back(results.own[v]);
    step.saved = results.saved[u];
    step.workspace = Workspace(node, node.plan->forward_workspace());
    steps.push_back(std::move(step));
  }

  void Forward(int u) {
    for (int v : graph_.unit(u).tops) maker_[v] = u;
    RunUnit(u, first_, program_.forward);
    for (int v : graph_.unit(u).tops) {
      const Value& value = graph_.values[v];
      // Losses are summed in f32.
      const bool summed =
          value.spec.dtype != DType::kF32 && graph_.nodes[value.producer].loss_weights[value.producer_top] != 0;
      const bool shown = c_.options.keep_all || value.uses.empty() || value.is_output || summed;
      if (shown) program_.value_tensor[v] = TensorAs(v, Shown(graph_.values[v].spec), program_.forward);
    }
  }

  // Which unit is the last of the backward pass to use each parameter.
  void FindUsers() {
    written_.assign(graph_.params.size(), false);
    parts_.resize(graph_.params.size());
    last_user_.assign(graph_.params.size(), -1);
    for (int u : graph_.order) {
      if (!graph_.unit(u).runs_backward) continue;
      for (int p : graph_.unit(u).params) {
        if (last_user_[p] < 0) last_user_[p] = u;
      }
    }
  }

  int FillGradient(const Value& value, float number) {
    Step step;
    step.kind = StepKind::kFillGradient;
    step.value = number;
    step.tops = {NewTensor("grad " + value.label(), value.spec)};
    program_.backward.push_back(step);
    return step.tops[0];
  }

  int SumOf(const std::vector<int>& parts, std::string name) {
    if (parts.size() == 1) return parts[0];
    Step sum;
    sum.kind = StepKind::kSumGradients;
    sum.tops = {NewTensor(std::move(name), program_.tensors[parts[0]].spec)};
    sum.bottoms = parts;
    program_.backward.push_back(sum);
    return sum.tops[0];
  }

  // The tensor that holds the whole gradient of a top once every reader's part is summed; kAbsent if no loss depends on
  // it.
  int WholeGradient(int v, float loss_weight) {
    const Value& value = graph_.values[v];
    const std::vector<int>& parts = contributions_[v];
    if (loss_weight != 0) Pend(v, FillGradient(value, loss_weight));
    if (parts.empty()) return Step::kAbsent;
    for (int part : parts) --pending_[same_memory_[part]];
    const int whole = SumOf(parts, "grad " + value.label());
    const bool shown = c_.options.keep_all || graph_.nodes[value.producer].setup->is_source();
    program_.value_grad[v] =
        shown && value.spec != Shown(value.spec) ? Reorder(whole, Shown(value.spec), program_.backward) : whole;
    return whole;
  }

  // `grad` itself, unless the gradient of another value, which is yet to be read, is the same tensor.
  int OwnCopy(int grad) {
    if (pending_[same_memory_[grad]] == 0) return grad;
    Step copy;
    copy.kind = StepKind::kReorder;
    copy.bottoms = {grad};
    copy.tops = {NewTensor(program_.tensors[grad].name + " (copy)", program_.tensors[grad].spec)};
    program_.backward.push_back(copy);
    return copy.tops[0];
  }

  void Backward(int u) {
    const Node& node = graph_.unit(u);
    if (!node.runs_backward) {
      // With force_backward that is where the gradients of inputs come together.
      for (int v : node.setup->is_source() ? node.tops : std::vector<int>()) WholeGradient(v, 0);
      return;
    }
    std::vector<int> top_grads;
    for (size_t i = 0; i < node.tops.size(); ++i)
      top_grads.push_back(WholeGradient(node.tops[i], node.loss_weights[i]));
    if (node.setup->is_view()) {
      const Value& bottom = graph_.values[node.bottoms[0]];
      for (int grad : top_grads) {
        if (grad == Step::kAbsent) continue;
        const int seen = NewTensor("grad " + bottom.label(), node.Laid(bottom.spec));
        Alias(grad, seen);
        Contribute(node.bottoms[0], seen);
      }
      return;
    }
    // A layer with several tops may add up their gradients; a loss knows which of its tops are only reports.
    if (!node.setup->is_loss()) {
      for (size_t i = 0; i < top_grads.size(); ++i) {
        if (top_grads[i] == Step::kAbsent) top_grads[i] = FillGradient(graph_.values[node.tops[i]], 0);
      }
    }
    if (node.plan->overwrites_top_gradient()) top_grads[0] = OwnCopy(top_grads[0]);
    Step step;
    step.kind = StepKind::kBackward;
    step.node = u;
    step.bottoms.assign(node.bottoms.size(), Step::kAbsent);
    step.tops.assign(node.tops.size(), Step::kAbsent);
    for (int i : node.plan->reads_bottom()) step.bottoms[i] = TensorFor(node, node.bottoms[i], program_.backward);
    for (int i : node.plan->reads_top()) step.tops[i] = ResultsOf(u, program_.backward).own[node.tops[i]];
    if (!node.plan->saved().empty()) step.saved = ResultsOf(u, program_.backward).saved[u];
    step.top_grads = std::move(top_grads);
    step.bottom_grads.assign(node.bottoms.size(), Step::kAbsent);
    bool writes = !node.params.empty();
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      if (!node.bottom_grads[i] || node.plan->passes_gradient(i)) continue;
      const Value& bottom = graph_.values[node.bottoms[i]];
      step.bottom_grads[i] = NewTensor("grad " + bottom.label(), node.Laid(bottom.spec));
      writes = true;
    }
    std::vector<Step> additions;
    for (size_t i = 0; i < node.params.size(); ++i) step.param_grads.push_back(ParamGradient(node, i, additions));
    step.workspace = Workspace(node, node.plan->backward_workspace());
    const std::vector<int> bottom_grads = step.bottom_grads;
    const int passed = step.top_grads[0];
    if (writes) program_.backward.push_back(std::move(step));
    for (Step& addition : additions) program_.backward.push_back(std::move(addition));
    for (int p : node.params) {
      if (last_user_[p] != u) continue;
      last_user_[p] = -1;  // a layer may have it twice
      if (!parts_[p].empty()) UseGradient(p);
      if (c_.options.keep_gradients && c_.options.announce_gradients && written_[p]) AnnounceGradient(p);
    }
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      if (node.bottom_grads[i]) Contribute(node.bottoms[i], bottom_grads[i] < 0 ? passed : bottom_grads[i]);
    }
  }

  int ParamGradient(const Node& node, size_t i, std::vector<Step>& additions) {
    if (!node.param_grads[i]) return Step::kAbsent;
    const int p = node.params[i];
    const auto new_tensor = [&] {
      return NewTensor("grad " + node.name() + "[" + std::to_string(i) + "]", graph_.params[p].stored());
    };
    if (!c_.options.keep_gradients) {
      parts_[p].push_back(new_tensor());
      return parts_[p].back();
    }
    const bool first = !written_[p];
    written_[p] = true;
    if (first && !c_.options.accumulate) return Step::kDirect;
    Step add;
    add.kind = StepKind::kAddToParameter;
    add.param = p;
    add.first_of_pass = first;
    add.bottoms = {new_tensor()};
    additions.push_back(add);
    return add.bottoms[0];
  }

  // It is where it is kept.
  void AnnounceGradient(int p) {
    Step use;
    use.kind = StepKind::kUseGradient;
    use.param = p;
    program_.backward.push_back(std::move(use));
  }

  void UseGradient(int p) {
    const GraphParam& param = graph_.params[p];
    const std::string name = graph_.nodes[param.owner].name() + "[" + std::to_string(param.owner_index) + "]";
    Step use;
    use.kind = StepKind::kUseGradient;
    use.param = p;
    use.bottoms = {SumOf(parts_[p], "grad " + name)};
    program_.backward.push_back(std::move(use));
    parts_[p].clear();
  }

  Compilation& c_;
  Graph& graph_;
  Program& program_;
  Results first_, again_;                        // of the forward pass, and of what the backward pass runs again
  int part_ = -1;                                // that is being scheduled
  std::vector<int> maker_;                       // by value: the unit
  std::vector<std::vector<int>> contributions_;  // by value: gradients its readers left
  std::vector<int> same_memory_;                 // by tensor: the first that is the same memory, itself if none is
  std::vector<int> pending_;                     // by first tensor: values whose gradient it is and is yet to be read
  std::vector<bool> written_;                    // by parameter, within this pass
  std::vector<std::vector<int>> parts_;          // by parameter: of its gradient, one from each user so far
  std::vector<int> last_user_;                   // by parameter: unit
};

}  // namespace

void Schedule(Compilation& c) { Scheduler(c).Run(); }

}  // namespace crema
