// Mish: y = x * tanh(log(1 + exp(x))) (Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019), as
// in YOLOv4.
#include "layers/elementwise_chain.h"

namespace crema {

REGISTER_LAYER(Mish, ElementwiseChainLayer);

}  // namespace crema
