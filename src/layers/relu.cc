// ReLU: y = x for x > 0, else negative_slope * x.
#include "layers/elementwise_chain.h"

namespace crema {

REGISTER_LAYER(ReLU, ElementwiseChainLayer, "relu_param");

}  // namespace crema
