// TanH: y = tanh(x).
#include "layers/elementwise_chain.h"

namespace crema {

REGISTER_LAYER(TanH, ElementwiseChainLayer, "tanh_param");

}  // namespace crema
