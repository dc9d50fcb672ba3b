// A compiled net, ready to run: a list of steps over tensors that all have their place in one arena.
#ifndef CREMA_GRAPH_PROGRAM_H_
#define CREMA_GRAPH_PROGRAM_H_

#include <string>
#include <utility>
#include <vector>

#include "crema/files.h"
#include "graph/graph.h"

namespace crema {

// Memory of the arena that one tensor, or several with the same or successive contents, occupy.
struct Storage {
  size_t bytes = 0;
  // First step that writes it and last that reads it; steps are numbered through forward and backward.
  int first = 0, last = 0;
  size_t offset = 0;
  int part = -1;  // of Program::parts: that of its first lane; others have theirs lane_bytes further on
};

struct PlannedTensor {
  std::string name;  // "ip1", "grad ip1", "pool1 saved 0", "conv1 workspace"
  TensorSpec spec;
  int storage = -1;
  int part = -1;  // of Program::parts: holds the items of one turn, and nothing from one turn to the next; -1: all
};

// Steps of the forward pass that run on `rows` items of the batch, then on the next ones, and so on, on several threads
// at once. Of tensors that hold all items each turn sees its own.
struct ProgramPart {
  int begin = 0, end = 0;  // steps
  int64_t rows = 0, turns = 0;
  int lanes = 1;          // threads, each with memory for what only one turn needs
  size_t lane_bytes = 0;  // of that memory
  Storage memory = {};    // of all lanes
};

enum class StepKind {
  kForward,  // in Program::backward: again, for what was not kept
  kBackward,
  kFillGradient,    // tops[0] = value: the seed of a loss, or zero for a top no loss depends on
  kSumGradients,    // tops[0] = the sum of bottoms, in their order; it may lie over either of the first two
  kReorder,         // tops[0] = bottoms[0] in another layout or type
  kAddToParameter,  // gradient of parameter `param` += tensor bottoms[0], or = where it is the first since
                    // ClearGradients
  kUseGradient,  // gradient of parameter `param`, whole in bottoms[0], or without bottoms where it is kept, is handed
                 // to who trains the net
};

struct Step {
  StepKind kind = StepKind::kForward;
  int node = -1;  // unit of the graph
  // Tensor ids; kAbsent where not wanted.
  std::vector<int> bottoms, tops, saved, top_grads, bottom_grads;
  // Tensor id of scratch, kAbsent, or kDirect: straight into the parameter's gradient.
  std::vector<int> param_grads;
  int workspace = -1;
  float value = 0;
  int param = -1;
  int part = -1;               // of Program::parts; -1: runs once
  bool first_of_pass = false;  // kAddToParameter: no earlier step of this pass wrote the parameter

  static constexpr int kAbsent = -1, kDirect = -2;
};

struct Program {
  std::vector<PlannedTensor> tensors;
  std::vector<Storage> storages;
  std::vector<Step> forward, backward;
  std::vector<ProgramPart> parts;
  // Tensor ids by value: contents, and final gradient (kAbsent without one). Of outputs, and of every value under
  // NetOptions::keep_all, these are plain.
  std::vector<int> value_tensor, value_grad;
  // Pairs of tensors that are the same memory: views, and reorders that change nothing (one channel, one pixel).
  std::vector<std::pair<int, int>> aliases;

  size_t arena_bytes = 0;  // what is allocated
  // What lives from one pass to the next (inputs) lies in front of this offset; from it on, the arena is free between
  // passes.
  size_t lasting_bytes = 0;
  size_t unshared_bytes = 0;  // what it would be if no two tensors shared memory
  int steps() const { return static_cast<int>(forward.size() + backward.size()); }
  // How often the step, of the forward pass, runs in a pass.
  int64_t turns(const Step& step) const { return step.part < 0 ? 1 : parts[step.part].turns; }
  // Most steps that a StepRecorder is told of in a pass.
  int64_t recorded() const {
    int64_t steps = static_cast<int64_t>(backward.size() + parts.size());
    for (const Step& step : forward) steps += turns(step);
    return steps;
  }
};

struct CompiledNet {
  NetFile file;  // what `graph` points into
  Graph graph;
  Program program;
  std::vector<std::pair<std::string, Shape>> assumed_shapes;  // those of --shape that were used
  std::vector<Diagnostic> warnings;
  std::vector<std::pair<std::string, double>> pass_seconds;
};

}  // namespace crema

#endif  // CREMA_GRAPH_PROGRAM_H_
