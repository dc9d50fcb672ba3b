// HardSwish: y = x * min(max(x + 3, 0), 6) / 6 (Howard et al., "Searching for MobileNetV3", 2019).
#include "layers/elementwise_chain.h"

namespace crema {

REGISTER_LAYER(HardSwish, ElementwiseChainLayer);

}  // namespace crema
