// What files of weights say of one layer.
#ifndef CREMA_RUNTIME_WEIGHTS_H_
#define CREMA_RUNTIME_WEIGHTS_H_

#include "crema/net.h"
#include "graph/graph.h"

namespace crema {

// A layer of `net` with the parameters that it has now, and with their gradients where these are asked for and there.
LayerParameter WithWeights(const Net& net, const Node& node, bool write_gradients = false);

}  // namespace crema

#endif  // CREMA_RUNTIME_WEIGHTS_H_
