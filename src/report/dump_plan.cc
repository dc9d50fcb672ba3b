
#include "base/number_text.h"
#include "base/text_table.h"
#include "report/dump.h"

namespace crema {

namespace {

class PlanText {
 public:
  explicit PlanText(const CompiledNet& net) : net_(net), program_(net.program) {}

  std::string Steps() const {
    TextTable table({">step", "what", "layer", "kernel", "reads", "writes"});
    int number = 0;
    for (const Step& step : program_.forward) AddStep(table, number++, step, "");
    if (!program_.backward.empty()) table.AddRule();
    for (const Step& step : program_.backward) AddStep(table, number++, step, " again");
    std::string text = table.ToString();
    for (const ProgramPart& part : program_.parts) {
      text += "\nsteps " + std::to_string(part.begin) + " to " + std::to_string(part.end - 1) + " run " +
              std::to_string(part.turns) + " times, on " + std::to_string(part.rows) + " items of the batch each\n";
    }
    return text;
  }

  std::string Tensors() const {
    TextTable table({"tensor", "shape", ">bytes", ">offset", ">end", "steps"});
    for (const PlannedTensor& tensor : program_.tensors) {
      std::vector<std::string> row = {tensor.name, tensor.spec.shape.ToString(), std::to_string(tensor.spec.bytes())};
      if (tensor.storage < 0) {
        row.insert(row.end(), {"-", "-", "never used"});
      } else {
        const Storage& storage = program_.storages[tensor.storage];
        row.insert(row.end(), {std::to_string(storage.offset), std::to_string(storage.offset + storage.bytes),
                               std::to_string(storage.first) + "-" + std::to_string(storage.last)});
      }
      table.AddRow(std::move(row));
    }
    return table.ToString();
  }

  // Empty where all are plain.
  std::string Parameters() const {
    TextTable table({"parameter", "shape", "kept as", ">bytes"});
    bool any = false;
    for (const GraphParam& param : net_.graph.params) {
      if (!param.layout) continue;
      any = true;
      table.AddRow({net_.graph.nodes[param.owner].name() + "[" + std::to_string(param.owner_index) + "]",
                    param.spec.shape.ToString(), param.layout->name(), std::to_string(param.stored().bytes())});
    }
    return any ? table.ToString() + "\n" : "";
  }

  std::string Skipped() const {
    std::string text;
    for (int u : net_.graph.order) {
      const Node& node = net_.graph.unit(u);
      if (node.plan->kernel().empty() && node.plan->skipped().empty()) continue;
      text += "  " + node.name() + " (" + node.type_name() + "): " + node.plan->kernel() + "\n";
      for (const std::string& reason : node.plan->skipped()) text += "    skipped " + reason + "\n";
    }
    return text;
  }

 private:
  void List(const std::vector<int>& tensors, std::string& text) const {
    for (int t : tensors) {
      if (t >= 0) text += (text.empty() ? "" : ", ") + program_.tensors[t].name;
    }
  }

  std::string Param(const Node& node, size_t i) const {
    return "param grad " + node.name() + "[" + std::to_string(i) + "]";
  }

  void AddStep(TextTable& table, int number, const Step& step, const char* again) const {
    const Node* node = step.node >= 0 ? &net_.graph.unit(step.node) : nullptr;
    const std::string name = node ? node->name() : "", kernel = node ? node->plan->kernel() : "";
    std::string what, reads, writes;
    switch (step.kind) {
      case StepKind::kForward:
        what = std::string("forward") + again;
        List(step.bottoms, reads);
        List(step.tops, writes);
        List(step.saved, writes);
        break;
      case StepKind::kBackward:
        what = "backward";
        List(step.top_grads, reads);
        List(step.bottoms, reads);
        List(step.tops, reads);
        List(step.saved, reads);
        List(step.bottom_grads, writes);
        for (size_t i = 0; i < step.param_grads.size(); ++i) {
          if (step.param_grads[i] == Step::kDirect) writes += (writes.empty() ? "" : ", ") + Param(*node, i);
        }
        List(step.param_grads, writes);
        break;
      case StepKind::kFillGradient: {
        what = "fill with " + FormatNumber(step.value);
        List(step.tops, writes);
        break;
      }
      case StepKind::kSumGradients:
        what = "sum";
        List(step.bottoms, reads);
        List(step.tops, writes);
        break;
      case StepKind::kReorder:
        what = "reorder " + std::to_string(program_.tensors[step.tops[0]].spec.bytes()) + " bytes";
        List(step.bottoms, reads);
        List(step.tops, writes);
        break;
      case StepKind::kUseGradient: {
        const GraphParam& param = net_.graph.params[step.param];
        what = step.bottoms.empty() ? "exchange" : "update";
        List(step.bottoms, reads);
        (step.bottoms.empty() ? reads : writes) =
            net_.graph.nodes[param.owner].name() + "[" + std::to_string(param.owner_index) + "]";
        break;
      }
      case StepKind::kAddToParameter: {
        const GraphParam& param = net_.graph.params[step.param];
        what = step.first_of_pass ? "set or add" : "add";
        List(step.bottoms, reads);
        writes = Param(net_.graph.nodes[param.owner], param.owner_index);
        break;
      }
    }
    table.AddRow({std::to_string(number), what, name, kernel, reads, writes});
  }

  const CompiledNet& net_;
  const Program& program_;
};

}  // namespace

std::string DumpPlan(const CompiledNet& net, bool explain) {
  const PlanText plan(net);
  std::string text = NetTitle(net) + "\n\n" + plan.Steps() + "\n" + plan.Parameters() + plan.Tensors();
  text += "\narena " + std::to_string(net.program.arena_bytes) + " bytes; " +
          std::to_string(net.program.unshared_bytes) + " if no two tensors shared memory\n";
  if (!explain) return text;
  text += "\nkernels:\n" + plan.Skipped();
  if (!net.graph.fusion_notes.empty()) text += "\nnot run as one:\n";
  for (const std::string& note : net.graph.fusion_notes) text += "  " + note + "\n";
  text += "\ncompiler passes:\n";
  for (const auto& [name, seconds] : net.pass_seconds) {
    std::string padded = name;
    padded.resize(std::max<size_t>(padded.size(), 18), ' ');
    text += "  " + padded + FormatSeconds(seconds) + "\n";
  }
  return text;
}

}  // namespace crema
