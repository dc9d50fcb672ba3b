#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/aligned_memory.h"
#include "compiler/compiler.h"
#include "compiler/occupied_memory.h"

namespace crema {

namespace {

// Tensors that share memory form a group; the group's root stands for its storage.
class MemoryPlanner {
 public:
  explicit MemoryPlanner(Compilation& c)
      : graph_(c.net.graph),
        program_(c.net.program),
        keep_all_(c.options.keep_all),
        count_(program_.tensors.size()),
        first_(count_, -1),
        last_(count_, -1),
        parent_(count_) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // Places nothing where the tensors of one step take more than `most` bytes; says whether it did.
  bool Run(size_t most) {
    FindLifetimes();
    JoinViews();
    if (!keep_all_) JoinInPlace();
    MakeStorages();
    if (most < SIZE_MAX && MostAtOnce() > most) return false;
    Place();
    return true;
  }

 private:
  int Root(int t) {
    while (parent_[t] != t) t = parent_[t] = parent_[parent_[t]];
    return t;
  }

  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    parent_[b] = a;
    if (first_[a] < 0 || (first_[b] >= 0 && first_[b] < first_[a])) first_[a] = first_[b];
    last_[a] = std::max(last_[a], last_[b]);
  }

  void Touch(int t, int step) {
    if (t < 0) return;
    if (first_[t] < 0) first_[t] = step;
    last_[t] = std::max(last_[t], step);
  }

  void TouchAll(const std::vector<int>& tensors, int step) {
    for (int t : tensors) Touch(t, step);
  }

  // What holds all items is there from the first turn to the last.
  void TouchInAllTurns(const std::vector<int>& tensors, const ProgramPart& part) {
    for (int t : tensors) {
      if (t < 0 || program_.tensors[t].part >= 0) continue;
      first_[t] = std::min(first_[t], part.begin);
      last_[t] = std::max(last_[t], part.end - 1);
    }
  }

  void FindLifetimes() {
    int now = 0;
    for (const auto* steps : {&program_.forward, &program_.backward}) {
      for (const Step& step : *steps) {
        for (const auto* list :
             {&step.bottoms, &step.tops, &step.saved, &step.top_grads, &step.bottom_grads, &step.param_grads}) {
          TouchAll(*list, now);
          if (step.part >= 0) TouchInAllTurns(*list, program_.parts[step.part]);
        }
        Touch(step.workspace, now);
        ++now;
      }
    }
    end_ = now;
    const auto whole_pass = [&](int t) {
      first_[t] = 0;
      last_[t] = end_;
    };
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const int t = program_.value_tensor[v];
      const int producer = graph_.values[v].producer;
      if (!graph_.nodes[producer].setup->is_source()) continue;
      whole_pass(t);
      if (const int grad = program_.value_grad[v]; grad >= 0) last_[grad] = end_;
    }
    for (int v : graph_.outputs) last_[program_.value_tensor[v]] = end_;
    // The losses are summed after the last step, also those that other layers read.
    for (const Node& node : graph_.nodes) {
      for (size_t i = 0; i < node.tops.size(); ++i) {
        if (node.loss_weights[i] != 0) last_[program_.value_tensor[node.tops[i]]] = end_;
      }
    }
    if (keep_all_) {
      for (int t = 0; t < static_cast<int>(count_); ++t) whole_pass(t);
    }
  }

  void JoinViews() {
    for (const auto& [tensor, view] : program_.aliases) Join(tensor, view);
  }

  // `over` is overwritten by `written` in step `now` if nothing that lives there is read later, or by another input of
  // the same step. Returns whether it is.
  bool TryInPlace(int over, int written, const std::vector<int>& inputs, int now) {
    if (over < 0 || written < 0 || program_.tensors[over].spec != program_.tensors[written].spec) return false;
    const int root = Root(over);
    if (last_[root] > now || Root(written) == root) return false;
    if (std::count_if(inputs.begin(), inputs.end(), [&](int t) { return t >= 0 && Root(t) == root; }) > 1) return false;
    Join(over, written);
    return true;
  }

  void JoinInPlace() {
    int now = 0;
    const auto forward = [&](const Step& step) {
      if (step.kind == StepKind::kForward && graph_.unit(step.node).setup->in_place() && !step.bottoms.empty()) {
        // Of all items the next turn reads its own.
        if (step.part >= 0 && step.bottoms[0] >= 0 && program_.tensors[step.bottoms[0]].part < 0) return;
        TryInPlace(step.bottoms[0], step.tops[0], step.bottoms, now);
      }
    };
    for (const Step& step : program_.forward) {
      forward(step);
      ++now;
    }
    for (const Step& step : program_.backward) {
      forward(step);
      if (step.kind == StepKind::kBackward && graph_.unit(step.node).setup->in_place() && !step.bottom_grads.empty()) {
        TryInPlace(step.top_grads[0], step.bottom_grads[0], step.top_grads, now);
      }
      if (step.kind == StepKind::kSumGradients) {
        if (!TryInPlace(step.bottoms[0], step.tops[0], step.bottoms, now)) {
          TryInPlace(step.bottoms[1], step.tops[0], step.bottoms, now);
        }
      }
      ++now;
    }
  }

  void MakeStorages() {
    std::vector<int> storage_of(count_, -1);
    std::vector<bool> is_view(count_, false);
    for (const auto& [tensor, view] : program_.aliases) is_view[view] = true;
    for (int t = 0; t < static_cast<int>(count_); ++t) {
      PlannedTensor& tensor = program_.tensors[t];
      const int root = Root(t);
      if (first_[root] < 0) continue;  // never touched (a blob of a skipped part)
      if (storage_of[root] < 0) {
        storage_of[root] = static_cast<int>(program_.storages.size());
        program_.storages.push_back({0, first_[root], last_[root], 0, tensor.part});
      }
      tensor.storage = storage_of[root];
      Storage& storage = program_.storages[tensor.storage];
      storage.bytes = std::max(storage.bytes, AlignedBytes(std::max<size_t>(tensor.spec.bytes(), 1)));
      if (!is_view[t]) program_.unshared_bytes += AlignedBytes(tensor.spec.bytes());
    }
  }

  // Bytes of what is alive in one step, of that which has the most.
  size_t MostAtOnce() const {
    std::vector<size_t> begins(static_cast<size_t>(end_) + 2), ends(begins.size());
    for (const Storage& storage : program_.storages) {
      if (storage.part >= 0) continue;
      begins[storage.first] += storage.bytes;
      ends[storage.last + 1] += storage.bytes;
    }
    size_t now = 0, most = 0;
    for (size_t step = 0; step < begins.size(); ++step) {
      now += begins[step] - ends[step];
      most = std::max(most, now);
    }
    return most;
  }

  // What lives through the whole pass first, then the largest. Each lane of a part is an arena of its own.
  void Place() {
    std::vector<Storage*> whole;
    std::vector<std::vector<Storage*>> inner(program_.parts.size());
    for (Storage& storage : program_.storages) {
      (storage.part < 0 ? whole : inner[storage.part]).push_back(&storage);
    }
    for (size_t p = 0; p < inner.size(); ++p) {
      ProgramPart& part = program_.parts[p];
      part.lane_bytes = PlaceAll(inner[p]);
      part.memory = {part.lane_bytes * static_cast<size_t>(part.lanes), part.begin, part.end - 1};
      whole.push_back(&part.memory);
    }
    program_.arena_bytes = PlaceAll(whole);
    for (const Storage* storage : whole) {
      if (Lasts(*storage)) program_.lasting_bytes = std::max(program_.lasting_bytes, storage->offset + storage->bytes);
    }
    for (size_t p = 0; p < inner.size(); ++p) {
      for (Storage* storage : inner[p]) storage->offset += program_.parts[p].memory.offset;
    }
  }

  bool Lasts(const Storage& storage) const { return storage.first == 0 && storage.last == end_; }

  // Each at the lowest offset where no storage alive at the same time stands (greedy by size; Pisarchyk and Lee,
  // "Efficient memory management for deep neural net inference", 2020). Returns the bytes of all.
  size_t PlaceAll(std::vector<Storage*> order) const {
    std::stable_sort(order.begin(), order.end(), [this](const Storage* a, const Storage* b) {
      return Lasts(*a) != Lasts(*b) ? Lasts(*a) : a->bytes > b->bytes;
    });
    OccupiedMemory occupied(end_ + 1);
    size_t end = 0;
    for (Storage* storage : order) {
      storage->offset = occupied.LowestFree(storage->first, storage->last, storage->bytes);
      occupied.Take(storage->first, storage->last, storage->offset, storage->bytes);
      end = std::max(end, storage->offset + storage->bytes);
    }
    return end;
  }

  const Graph& graph_;
  Program& program_;
  const bool keep_all_;
  const size_t count_;
  std::vector<int> first_, last_;  // of a root: over its group
  std::vector<int> parent_;
  int end_ = 0;
};

}  // namespace

void PlanMemory(Compilation& c) { MemoryPlanner(c).Run(SIZE_MAX); }

bool PlanMemoryWithin(Compilation& c, size_t most) {
  return MemoryPlanner(c).Run(most) && c.net.program.arena_bytes <= most;
}

}  // namespace crema
