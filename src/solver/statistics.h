// Which parameters of a net are running statistics that its training passes change.
#ifndef CREMA_SOLVER_STATISTICS_H_
#define CREMA_SOLVER_STATISTICS_H_

#include <array>
#include <vector>

#include "crema/net.h"

namespace crema {

// Those of one BatchNorm layer, or of several that share them all: sum of means, sum of variances, sum of weights
// (layers/batch_norm.cc), counted as Net::parameters() does.
struct StatisticsBlobs {
  std::array<int, 3> parameters;
};

// In the order of the layers. Throws UserError where layers share some of their statistics but not all.
std::vector<StatisticsBlobs> StatisticsOf(const Net& net);

}  // namespace crema

#endif  // CREMA_SOLVER_STATISTICS_H_
