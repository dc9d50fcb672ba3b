#include <algorithm>

#include "base/check.h"
#include "compiler/compiler.h"

namespace crema {

namespace {

class Scheduler {
 public:
  explicit Scheduler(Compilation& c)
      : c_(c), graph_(c.net.graph), program_(c.net.program), saved_(graph_.nodes.size()) {}

  void Run() {
    contributions_.resize(graph_.values.size());
    program_.value_grad.assign(graph_.values.size(), Step::kAbsent);
    for (const Value& value : graph_.values) program_.value_tensor.push_back(NewTensor(value.label(), value.spec));
    for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) Forward(n);
    if (!c_.options.backward) return;
    written_.assign(graph_.params.size(), false);
    for (int n = static_cast<int>(graph_.nodes.size()) - 1; n >= 0; --n) Backward(n);
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

  std::vector<int> Tensors(const std::vector<int>& values) const {
    std::vector<int> ids;
    for (int v : values) ids.push_back(program_.value_tensor[v]);
    return ids;
  }

  void Forward(int n) {
    const Node& node = graph_.nodes[n];
    for (size_t i = 0; i < node.plan->saved().size(); ++i) {
      saved_[n].push_back(NewTensor(node.name() + " saved " + std::to_string(i), node.plan->saved()[i]));
    }
    if (node.setup->is_view()) return;
    Step step;
    step.kind = StepKind::kForward;
    step.node = n;
    step.bottoms = Tensors(node.bottoms);
    step.tops = Tensors(node.tops);
    step.saved = saved_[n];
    step.workspace = Workspace(node, node.plan->forward_workspace());
    program_.forward.push_back(std::move(step));
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
    if (loss_weight != 0) parts.push_back(FillGradient(value, loss_weight));
    if (parts.empty()) return Step::kAbsent;
    if (parts.size() > 1) {
      Step sum;
      sum.kind = StepKind::kSumGradients;
      sum.tops = {parts[0]};
      sum.bottoms.assign(parts.begin() + 1, parts.end());
      program_.backward.push_back(std::move(sum));
    }
    program_.value_grad[v] = parts[0];
    return parts[0];
  }

  void Backward(int n) {
    const Node& node = graph_.nodes[n];
    if (!node.runs_backward) return;
    std::vector<int> top_grads;
    for (size_t i = 0; i < node.tops.size(); ++i)
      top_grads.push_back(WholeGradient(node.tops[i], node.loss_weights[i]));
    if (node.setup->is_view()) {
      for (int grad : top_grads) {
        if (grad != Step::kAbsent) contributions_[node.bottoms[0]].push_back(grad);
      }
      return;
    }
    // A layer with several tops may add up their gradients; a loss knows which of its tops are only reports.
    if (!node.setup->is_loss()) {
      for (size_t i = 0; i < top_grads.size(); ++i) {
        if (top_grads[i] == Step::kAbsent) top_grads[i] = FillGradient(graph_.values[node.tops[i]], 0);
      }
    }
    Step step;
    step.kind = StepKind::kBackward;
    step.node = n;
    step.bottoms.assign(node.bottoms.size(), Step::kAbsent);
    step.tops.assign(node.tops.size(), Step::kAbsent);
    for (int i : node.plan->reads_bottom()) step.bottoms[i] = program_.value_tensor[node.bottoms[i]];
    for (int i : node.plan->reads_top()) step.tops[i] = program_.value_tensor[node.tops[i]];
    step.saved = saved_[n];
    step.top_grads = std::move(top_grads);
    for (size_t i = 0; i < node.bottoms.size(); ++i) {
      const Value& bottom = graph_.values[node.bottoms[i]];
      step.bottom_grads.push_back(node.bottom_grads[i] ? NewTensor("grad " + bottom.label(), bottom.spec)
                                                       : Step::kAbsent);
      if (node.bottom_grads[i]) contributions_[node.bottoms[i]].push_back(step.bottom_grads.back());
    }
    std::vector<Step> additions;
    for (size_t i = 0; i < node.params.size(); ++i) step.param_grads.push_back(ParamGradient(node, i, additions));
    step.workspace = Workspace(node, node.plan->backward_workspace());
    program_.backward.push_back(std::move(step));
    for (Step& addition : additions) program_.backward.push_back(std::move(addition));
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
  std::vector<std::vector<int>> saved_;          // by node
  std::vector<std::vector<int>> contributions_;  // by value: gradients its readers left
  std::vector<bool> written_;                    // by parameter, within this pass
};

}  // namespace

void Schedule(Compilation& c) { Scheduler(c).Run(); }

}  // namespace crema
