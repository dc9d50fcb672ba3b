#include "solver/zero_loss_watch.h"

#include <utility>
#include <vector>

#include "base/listed.h"
#include "graph/program.h"

namespace crema {

std::string ZeroLossWatch::Look(int iteration, float loss, const Net& net) {
  constexpr int kTelling = 20;
  if (iteration != watched_) return "";
  zero_loss_ = zero_loss_ && loss == 0;
  std::vector<NetOutput> outputs;
  if (iteration == 0 || !zero_terms_.empty()) outputs = net.outputs();
  for (const NetOutput& output : outputs) {
    if (iteration == 0 && output.loss_weight != 0) zero_terms_.insert(output.name);
  }
  for (const NetOutput& output : outputs) {
    for (int64_t i = 0; i < output.value.count() && zero_terms_.contains(output.name); ++i) {
      if (output.value.value(i) != 0) zero_terms_.erase(output.name);
    }
  }
  return ++watched_ == kTelling ? End() : "";
}

std::string ZeroLossWatch::LookBelowZero(float loss, const Net& net) {
  if (told_below_zero_ || !(loss < 0)) return "";
  const Graph& graph = net.compiled().graph;
  for (const Node& node : graph.nodes) {
    if (node.type->name != "SigmoidCrossEntropyLoss") continue;
    const std::string& top = graph.values[node.tops[0]].name;
    for (const NetOutput& output : net.outputs()) {
      if (output.name != top || output.value.count() != 1 || !(output.value.value(0) < 0)) continue;
      told_below_zero_ = true;
      return "the loss of layer \"" + node.name() +
             "\" (SigmoidCrossEntropyLoss) is below 0, which targets from 0 to 1 never make it, so that it has no "
             "lowest value: scale images to that range (transform_param { scale: 0.00392156863 }), and labels of -1 "
             "and 1 by a Power layer (power_param { scale: 0.5 shift: 0.5 })";
    }
  }
  return "";
}

std::string ZeroLossWatch::End() {
  const int iterations = std::exchange(watched_, kTold);
  if (iterations <= 0 || (!zero_loss_ && zero_terms_.empty())) return "";
  std::string losses = "loss";
  if (!zero_loss_) {
    losses = (zero_terms_.size() == 1 ? "loss " : "losses ") + Listed(zero_terms_, {.quoted = true});
  }
  const bool several = !zero_loss_ && zero_terms_.size() > 1;
  return "the " + losses + (several ? " were" : " was") + " exactly 0 in " +
         (iterations == 1 ? "the first iteration" : "each of the first " + std::to_string(iterations) + " iterations") +
         ", so nothing was learnt from " + (several ? "them" : "it") +
         ": look whether the data has labels that count (objects to detect, pixels without ignore_label), and whether "
         "they reach the loss";
}

}  // namespace crema
