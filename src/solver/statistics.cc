#include "solver/statistics.h"

#include <algorithm>
#include <map>

#include "graph/batch_norm_modes.h"
#include "graph/program.h"

namespace crema {

namespace {

// Whether forward passes of this net change the layer's statistics.
bool GathersStatistics(const Node& node) {
  return node.param->type() == "BatchNorm" && NormalizesByBatch(node.param->batch_norm_param(), node.setup->phase());
}

}  // namespace

std::vector<StatisticsBlobs> StatisticsOf(const Net& net) {
  std::vector<StatisticsBlobs> list;
  std::map<int, const Node*> owners;  // by parameter: the first layer of those that share it
  for (const Node& node : net.compiled().graph.nodes) {
    const bool gathers = node.param->type() == "BN" && node.params.size() > 2;  // SegNet's BN has no statistics
    if (gathers && node.setup->phase() == TRAIN && !node.param->bn_param().frozen()) {
      throw UserError("the running statistics of layer \"" + node.name() +
                      "\" (BN) cannot be brought together from several machines or threads; use BatchNorm and Scale "
                      "instead, or bn_param { frozen: true }");
    }
    if (!GathersStatistics(node)) continue;
    StatisticsBlobs blobs;
    std::copy_n(node.params.begin(), blobs.parameters.size(), blobs.parameters.begin());
    const auto shared = std::find_if(blobs.parameters.begin(), blobs.parameters.end(),
                                     [&](int parameter) { return owners.contains(parameter); });
    if (shared == blobs.parameters.end()) {
      for (const int parameter : blobs.parameters) owners[parameter] = &node;
      list.push_back(blobs);
      continue;
    }
    const Node& other = *owners[*shared];
    if (std::equal(blobs.parameters.begin(), blobs.parameters.end(), other.params.begin())) continue;
    throw UserError("BatchNorm layers \"" + other.name() + "\" and \"" + node.name() +
                    "\" share some of their statistics but not all; give all three blobs the same names in both, or "
                    "none");
  }
  return list;
}

}  // namespace crema
