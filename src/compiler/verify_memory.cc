#include <algorithm>

#include "base/check.h"
#include "compiler/compiler.h"

namespace crema {

namespace {

// Walks the program as the executor will and keeps account of whose contents each storage holds.
class MemoryVerifier {
 public:
  explicit MemoryVerifier(const Compilation& c)
      : graph_(c.net.graph), program_(c.net.program), same_(program_.tensors.size()) {
    for (size_t t = 0; t < same_.size(); ++t) same_[t] = static_cast<int>(t);
    for (const auto& [tensor, view] : program_.aliases) same_[view] = tensor;
    contents_.assign(program_.storages.size(), Step::kAbsent);
  }

  void Run() {
    for (int i = 0; i < static_cast<int>(program_.forward.size()); ++i) {
      const Step& step = program_.forward[i];
      Walk(step);
      if (step.part < 0 || i + 1 < program_.parts[step.part].end) continue;
      // A second turn, which finds what the first left.
      for (int j = program_.parts[step.part].begin; j <= i; ++j) Walk(program_.forward[j]);
    }
    for (const Step& step : program_.backward) Walk(step);
    for (int v : graph_.outputs) Read({program_.value_tensor[v]});
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.nodes[graph_.values[v].producer].setup->is_source()) Read({program_.value_grad[v]});
    }
    for (const Node& node : graph_.nodes) {
      for (size_t i = 0; i < node.tops.size(); ++i) {
        if (node.loss_weights[i] != 0) Read({program_.value_tensor[node.tops[i]]});
      }
    }
    CheckPlaces();
  }

 private:
  void Walk(const Step& step) {
    Read(step.bottoms);
    Read(step.top_grads);
    if (step.kind == StepKind::kBackward) {
      Read(step.tops);
      Read(step.saved);
      if (graph_.unit(step.node).plan->overwrites_top_gradient()) {
        contents_[program_.tensors[step.top_grads[0]].storage] = Step::kAbsent;
      }
    } else {
      Write(step.tops);
      Write(step.saved);
    }
    Write(step.bottom_grads);
    Write(step.param_grads);
    Write({step.workspace});
  }

  // A view of a view is the first one's memory.
  int Original(int t) const {
    while (same_[t] != t) t = same_[t];
    return t;
  }

  void Read(const std::vector<int>& tensors) const {
    for (int t : tensors) {
      if (t < 0) continue;
      const int held = contents_[program_.tensors[t].storage];
      CREMA_CHECK(held == Original(t)) << program_.tensors[t].name << " is read where "
                                       << (held < 0 ? "nothing" : program_.tensors[held].name) << " lies";
    }
  }

  void Write(const std::vector<int>& tensors) {
    for (int t : tensors) {
      if (t >= 0) contents_[program_.tensors[t].storage] = Original(t);
    }
  }

  // Storages that live at the same time lie apart.
  void CheckPlaces() const {
    std::vector<const Storage*> whole;
    std::vector<std::vector<const Storage*>> inner(program_.parts.size());
    for (const Storage& storage : program_.storages) {
      (storage.part < 0 ? whole : inner[storage.part]).push_back(&storage);
    }
    for (size_t p = 0; p < inner.size(); ++p) {
      const ProgramPart& part = program_.parts[p];
      if (part.lane_bytes > 0) whole.push_back(&part.memory);
      CheckPlaces(inner[p]);
      for (const Storage* storage : inner[p]) {
        const size_t begin = storage->offset - part.memory.offset;
        CREMA_CHECK(storage->offset >= part.memory.offset && begin + storage->bytes <= part.lane_bytes)
            << "a storage at offset " << storage->offset << " is outside of its lane";
      }
    }
    CheckPlaces(whole);
  }

  static void CheckPlaces(std::vector<const Storage*> by_offset) {
    std::sort(by_offset.begin(), by_offset.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
    for (size_t i = 0; i < by_offset.size(); ++i) {
      const Storage& a = *by_offset[i];
      for (size_t j = i + 1; j < by_offset.size() && by_offset[j]->offset < a.offset + a.bytes; ++j) {
        const Storage& b = *by_offset[j];
        CREMA_CHECK(a.last < b.first || b.last < a.first) << "two storages at offset " << b.offset;
      }
    }
  }

  const Graph& graph_;
  const Program& program_;
  std::vector<int> same_;      // by tensor: of which it is a view, itself if of none
  std::vector<int> contents_;  // by storage: the tensor last written
};

}  // namespace

void VerifyMemory(const Compilation& c) { MemoryVerifier(c).Run(); }

}  // namespace crema
