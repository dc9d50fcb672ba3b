#include <algorithm>

#include "base/check.h"
#include "compiler/compiler.h"

namespace crema {

namespace {

class Scheduler {
 public:
  explicit Scheduler(Compilation& c)
      : c_(c), graph_(c.net.graph), program_(c.net.program), saved_(graph_.nodes.size() + graph_.fused.size()) {}

  void Run() {
    const size_t values = graph_.values.size();
    contributions_.resize(values);
    reordered_.resize(values);
    program_.value_grad.assign(values, Step::kAbsent);
    for (const Value& value : graph_.values) own_.push_back(NewTensor(value.label(), value.spec));
    program_.value_tensor = own_;
    for (int u : graph_.order) Forward(u);
    if (!c_.options.backward) return;
    written_.assign(graph_.params.size(), false);
    for (auto u = graph_.order.rbegin(); u != graph_.order.rend(); ++u) Backward(*u);
  }

 private:
  int NewTensor(std::string name, TensorSpec spec) {
    program_.tensors.push_back({std::move(name), std::move(spec), -1});
    return static_cast<int>(program_.tensors.size()) - 1;
  }

  int Workspace(const Node& node, size_t bytes) {
    if (bytes == 0) return Step::kAbsent;
    return NewTensor(node.name() + " workspace", {Shape{static_cast<int64_t>(bytes)}, DType::kU8});
  }

  // `tensor` as `wanted`, which differs in layout or type: written by a step, or the same memory where only the layout
  // differs, and that in name only.
  int Reorder(int tensor, const TensorSpec& wanted, std::vector<Step>& steps) {
    const TensorSpec& spec = program_.tensors[tensor].spec;
    const char* suffix = wanted.dtype != spec.dtype        ? (wanted.dtype == DType::kBF16 ? " (bf16)" : " (f32)")
                         : wanted.layout == Layout::kPlain ? " (plain)"
                                                           : " (channels last)";
    const bool same_memory = wanted.dtype == spec.dtype && (spec.shape[1] == 1 || spec.shape.count(2) == 1);
    const int reordered = NewTensor(program_.tensors[tensor].name + suffix, wanted);
    if (same_memory) {
      program_.aliases.emplace_back(tensor, reordered);
      return reordered;
    }
    Step step;
    step.kind = StepKind::kReorder;
    step.bottoms = {tensor};
    step.tops = {reordered};
    steps.push_back(std::move(step));
    return reordered;
  }

  // The tensor of a value as its reader wants it.
  int TensorAs(int v, const TensorSpec& wanted) {
    if (program_.tensors[own_[v]].spec == wanted) return own_[v];
    for (int other : reordered_[v]) {
      if (program_.tensors[other].spec == wanted) return other;
    }
    reordered_[v].push_back(Reorder(own_[v], wanted, program_.forward));
    return reordered_[v].back();
  }

  int TensorFor(const Node& node, int v) { return TensorAs(v, node.Laid(graph_.values[v].spec)); }

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
    pending_.resize(program_.tensors.size());
    ++pending_[grad];
  }

  void Forward(int u) {
    const Node& node = graph_.unit(u);
    for (size_t i = 0; i < node.plan->saved().size(); ++i) {
      saved_[u].push_back(NewTensor(node.name() + " saved " + std::to_string(i), node.plan->saved()[i]));
    }
    if (node.setup->is_view()) {
      const int from = TensorFor(node, node.bottoms[0]);
      for (int v : node.tops) program_.aliases.emplace_back(from, own_[v]);
    } else {
      Step step;
      step.kind = StepKind::kForward;
      step.node = u;
      for (int v : node.bottoms) step.bottoms.push_back(TensorFor(node, v));
      for (int v : node.tops) step.tops.push_back(own_[v]);
      step.saved = saved_[u];
      step.workspace = Workspace(node, node.plan->forward_workspace());
      program_.forward.push_back(std::move(step));
    }
    for (int v : node.tops) {
      const bool shown = c_.options.keep_all || graph_.values[v].uses.empty();
      if (shown) program_.value_tensor[v] = TensorAs(v, Shown(graph_.values[v].spec));
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

  // The tensor that holds the whole gradient of a top once every reader's part is summed; kAbsent if no loss depends on
  // it.
  int WholeGradient(int v, float loss_weight) {
    const Value& value = graph_.values[v];
    std::vector<int>& parts = contributions_[v];
    if (loss_weight != 0) Pend(v, FillGradient(value, loss_weight));
    if (parts.empty()) return Step::kAbsent;
    for (int part : parts) --pending_[part];
    int whole = parts[0];
    if (parts.size() > 1) {
      Step sum;
      sum.kind = StepKind::kSumGradients;
      sum.tops = {whole = NewTensor("grad " + value.label(), value.spec)};
      sum.bottoms = parts;
      program_.backward.push_back(std::move(sum));
    }
    program_.value_grad[v] = c_.options.keep_all && value.spec != Shown(value.spec)
                                 ? Reorder(whole, Shown(value.spec), program_.backward)
                                 : whole;
    return whole;
  }

  // `grad` itself, unless the gradient of another value, which is yet to be read, is the same tensor.
  int OwnCopy(int grad) {
    if (static_cast<size_t>(grad) >= pending_.size() || pending_[grad] == 0) return grad;
    Step copy;
    copy.kind = StepKind::kReorder;
    copy.bottoms = {grad};
    copy.tops = {NewTensor(program_.tensors[grad].name + " (copy)", program_.tensors[grad].spec)};
    program_.backward.push_back(copy);
    return copy.tops[0];
  }

  void Backward(int u) {
    const Node& node = graph_.unit(u);
    if (!node.runs_backward) return;
    std::vector<int> top_grads;
    for (size_t i = 0; i < node.tops.size(); ++i)
      top_grads.push_back(WholeGradient(node.tops[i], node.loss_weights[i]));
    if (node.setup->is_view()) {
      for (int grad : top_grads) {
        if (grad != Step::kAbsent) Contribute(node.bottoms[0], grad);
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
    for (int i : node.plan->reads_bottom()) step.bottoms[i] = TensorFor(node, node.bottoms[i]);
    for (int i : node.plan->reads_top()) step.tops[i] = own_[node.tops[i]];
    step.saved = saved_[u];
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
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      if (node.bottom_grads[i]) Contribute(node.bottoms[i], bottom_grads[i] < 0 ? passed : bottom_grads[i]);
    }
  }

  int ParamGradient(const Node& node, size_t i, std::vector<Step>& additions) {
    if (!node.param_grads[i]) return Step::kAbsent;
    const int p = node.params[i];
    const bool first = !written_[p];
    written_[p] = true;
    if (first && !c_.options.accumulate) return Step::kDirect;
    Step add;
    add.kind = StepKind::kAddToParameter;
    add.param = p;
    add.first_of_pass = first;
    add.bottoms = {NewTensor("grad " + node.name() + "[" + std::to_string(i) + "]", graph_.params[p].spec)};
    additions.push_back(add);
    return add.bottoms[0];
  }

  Compilation& c_;
  Graph& graph_;
  Program& program_;
  std::vector<int> own_;                         // by value: as its producer writes it
  std::vector<std::vector<int>> reordered_;      // by value: in other layouts and types
  std::vector<std::vector<int>> saved_;          // by unit
  std::vector<std::vector<int>> contributions_;  // by value: gradients its readers left
  std::vector<int> pending_;                     // by tensor: values whose gradient it is and is yet to be read
  std::vector<bool> written_;                    // by parameter, within this pass
};

}  // namespace

void Schedule(Compilation& c) { Scheduler(c).Run(); }

}  // namespace crema
