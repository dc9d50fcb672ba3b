// What of a train net's outputs goes with every step of a worker, for display elsewhere.
#ifndef CREMA_SOLVER_SHOWN_OUTPUTS_H_
#define CREMA_SOLVER_SHOWN_OUTPUTS_H_

#include <vector>

#include "crema/net.h"

namespace crema {

// Those of at most 256 numbers, up to 4,096 in all; the others, such as maps of scores, are too large for messages.
std::vector<NetOutput> ShownOutputs(const Net& net);

}  // namespace crema

#endif  // CREMA_SOLVER_SHOWN_OUTPUTS_H_
