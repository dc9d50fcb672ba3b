// Darknet's learning rates: policy and burn_in of [net].
#ifndef CREMA_DARKNET_RATES_H_
#define CREMA_DARKNET_RATES_H_

#include <cstdint>

#include "crema/solver.pb.h"
#include "darknet/settings.h"

namespace crema::darknet {

constexpr int64_t kMostIterations = 1 << 30;

// Reads the keys of [net] that say how the rate goes, into a solver that has its max_iter. Mistakes go where `settings`
// collects them.
void ReadRates(Settings* settings, SolverParameter* solver);

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_RATES_H_
