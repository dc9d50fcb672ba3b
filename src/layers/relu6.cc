// ReLU6: y = x between 0 and 6, else the nearer of them (Howard et al., "MobileNets", 2017).
#include "layers/elementwise_chain.h"

namespace crema {

REGISTER_LAYER(ReLU6, ElementwiseChainLayer);

}  // namespace crema
