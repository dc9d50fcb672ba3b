// What the parts of LikelyMistakes share: each looks for mistakes of one kind.
#ifndef CREMA_SOLVER_CHECKS_MISTAKE_FINDER_H_
#define CREMA_SOLVER_CHECKS_MISTAKE_FINDER_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/net.h"
#include "crema/solver.pb.h"
#include "graph/graph.h"

namespace crema {

struct TrainedNets {
  const SolverParameter& solver;
  const Net& train;
  const std::vector<std::unique_ptr<Net>>& tests;
  const std::set<std::string>& loaded;  // layers that a weights file filled
};

// mistakes_of_data.cc: what is read, and in which order.
void FindMistakesOfData(const TrainedNets& nets, std::vector<Diagnostic>* found);
// zero_weights.cc: layers that learn nothing, or let nothing through, since their weights are 0.
void FindZeroWeights(const TrainedNets& nets, std::vector<Diagnostic>* found);

class MistakeFinder {
 public:
  MistakeFinder(const TrainedNets& nets, std::vector<Diagnostic>* found);

 protected:
  using Severity = Diagnostic::Severity;

  // Of a layer of that net, or of none.
  void Say(Severity severity, const Net& net, const Node* node, std::string message);
  // Whether the first parameter is, by itself or by the layer that it is shared with.
  bool IsLoaded(const Node& node) const;
  bool ReachesLoss(const Node& node) const;

  static std::string Quoted(const std::string& name) { return "\"" + name + "\""; }
  static std::string Layer(const Node& node);
  // The layer that made a bottom; null for what is fed.
  static const Node* MakerOf(const Graph& graph, int value);

  const TrainedNets nets_;
  const Net& train_;
  const Graph& graph_;  // the train net's

 private:
  std::vector<Diagnostic>* const found_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_CHECKS_MISTAKE_FINDER_H_
