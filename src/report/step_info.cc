#include "report/step_info.h"

#include <algorithm>

#include "graph/boundary_types.h"

namespace crema {

namespace {

class Describer {
 public:
  explicit Describer(const CompiledNet& net) : net_(net) {}

  StepInfo Describe(const Step& step) {
    info_ = {};
    turns_ = net_.program.turns(step);
    switch (step.kind) {
      case StepKind::kForward:
        Forward(step, net_.graph.unit(step.node));
        break;
      case StepKind::kBackward:
        Backward(step, net_.graph.unit(step.node));
        break;
      case StepKind::kFillGradient:
        Plain("fill", step, Name(step.tops[0]));
        break;
      case StepKind::kSumGradients:
        Plain("sum", step, Name(step.tops[0]));
        break;
      case StepKind::kReorder:
        Plain("reorder", step, Name(step.tops[0]));
        break;
      case StepKind::kAddToParameter:
        Plain("sum", step, Name(step.bottoms[0]));
        Writes(net_.graph.params[step.param].spec);
        if (!step.first_of_pass) info_.bytes += net_.graph.params[step.param].spec.bytes();
        break;
      case StepKind::kUseGradient:
        Plain(step.bottoms.empty() ? "exchange" : "update", step,
              net_.graph.nodes[net_.graph.params[step.param].owner].name() + "[" +
                  std::to_string(net_.graph.params[step.param].owner_index) + "]");
        Writes(net_.graph.params[step.param].spec);
        break;
    }
    return info_;
  }

 private:
  const std::string& Name(int tensor) const { return net_.program.tensors[tensor].name; }

  // The first tensor written gives the shape.
  void Writes(const TensorSpec& spec) {
    if (!written_) info_.shape = spec.shape;
    written_ = true;
    info_.bytes += spec.bytes();
  }
  void Writes(const std::vector<int>& tensors) {
    for (int t : tensors) {
      if (t >= 0) Writes(InAllTurns(t));
    }
  }
  void Reads(const std::vector<int>& tensors) {
    for (int t : tensors) {
      if (t >= 0) info_.bytes += InAllTurns(t).bytes();
    }
  }
  TensorSpec InAllTurns(int t) const {
    const PlannedTensor& tensor = net_.program.tensors[t];
    TensorSpec spec = tensor.spec;
    if (tensor.part >= 0) spec.shape.set(0, spec.shape[0] * turns_);
    return spec;
  }
  void ReadsParams(const Node& unit) {
    for (int p : unit.params) info_.bytes += net_.graph.params[p].spec.bytes();
  }

  void Plain(const char* what, const Step& step, const std::string& of) {
    written_ = false;
    info_.category = what;
    info_.name = std::string(what) + " " + of;
    Reads(step.bottoms);
    Writes(step.tops);
  }

  void Layers(const Node& unit, const char* category) {
    written_ = false;
    info_.name = unit.name();
    info_.type = unit.type_name();
    info_.kernel = unit.plan->kernel();
    info_.category = category;
  }

  template <typename Count>
  double Flops(const Node& unit, const Count& count) const {
    if (unit.members.empty()) return unit.setup->flops() * count(unit);
    double flops = 0;
    for (int m : unit.members) flops += net_.graph.nodes[m].setup->flops() * count(net_.graph.nodes[m]);
    return flops;
  }

  void Forward(const Step& step, const Node& unit) {
    const bool is_input = IsInputType(unit.type_name());
    Layers(unit, unit.setup->is_source() && !is_input ? "data wait" : "forward");
    Reads(step.bottoms);
    ReadsParams(unit);
    Writes(step.tops);
    Writes(step.saved);
    if (is_input) info_.bytes = 0;
    info_.flops = Flops(unit, [](const Node&) { return 1; });
  }

  void Backward(const Step& step, const Node& unit) {
    Layers(unit, "backward");
    Writes(step.bottom_grads);
    Writes(step.param_grads);
    for (size_t i = 0; i < step.param_grads.size(); ++i) {
      if (step.param_grads[i] == Step::kDirect) Writes(net_.graph.params[unit.params[i]].spec);
    }
    Reads(step.top_grads);
    Reads(step.bottoms);
    Reads(step.tops);
    Reads(step.saved);
    const auto given = [](int tensor) { return tensor >= 0; };
    if (std::any_of(step.bottom_grads.begin(), step.bottom_grads.end(), given)) ReadsParams(unit);
    info_.flops = Flops(unit, [](const Node& node) {
      const auto any = [](const std::vector<bool>& wanted) {
        return std::find(wanted.begin(), wanted.end(), true) != wanted.end() ? 1 : 0;
      };
      return any(node.param_grads) + any(node.bottom_grads);
    });
  }

  const CompiledNet& net_;
  StepInfo info_;
  bool written_ = false;
  int64_t turns_ = 1;
};

}  // namespace

std::vector<StepInfo> DescribeSteps(const CompiledNet& net) {
  Describer describer(net);
  std::vector<StepInfo> infos;
  for (const Step& step : net.program.forward) infos.push_back(describer.Describe(step));
  for (const Step& step : net.program.backward) {
    infos.push_back(describer.Describe(step));
    if (step.kind != StepKind::kForward) continue;
    infos.back().name += " again";
    infos.back().category = "again";
  }
  return infos;
}

double PassFlops(const CompiledNet& net) {
  double flops = 0;
  for (const StepInfo& info : DescribeSteps(net)) flops += info.flops;
  return flops;
}

}  // namespace crema
