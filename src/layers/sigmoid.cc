// Sigmoid: y = 1 / (1 + exp(-x)).
#include "layers/elementwise_chain.h"

namespace crema {

REGISTER_LAYER(Sigmoid, ElementwiseChainLayer, "sigmoid_param");

}  // namespace crema
