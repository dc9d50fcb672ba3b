// What is allowed in a training, and seldom meant.
#ifndef CREMA_SOLVER_CHECKS_LIKELY_MISTAKES_H_
#define CREMA_SOLVER_CHECKS_LIKELY_MISTAKES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/net.h"
#include "crema/solver.pb.h"
#include "graph/graph.h"

namespace crema {

// Whether a layer's weights, of a convolution or an inner product, are 0 before they learn; `loaded`: the layers that a
// weights file filled.
bool StartsWithZeros(const Graph& graph, const Node& node, const std::set<std::string>& loaded);

// Warnings and notes about a solver and its nets. `loaded`: likewise.
std::vector<Diagnostic> LikelyMistakes(const SolverParameter& solver, const Net& train,
                                       const std::vector<std::unique_ptr<Net>>& tests,
                                       const std::set<std::string>& loaded);

// The data layer that needs the most batches for all of its records; none where it is not known how many a layer has,
// as before the first batch.
struct DataLayer {
  std::string layer;
  DataExtent extent;
  uint64_t batches = 0;
};
std::optional<DataLayer> LongestData(const Net& net);

// What to tell where tests of so many batches do not read all records as often; empty otherwise.
std::string PartlyTested(const Net& test_net, const std::string& name, int batches);

}  // namespace crema

#endif  // CREMA_SOLVER_CHECKS_LIKELY_MISTAKES_H_
