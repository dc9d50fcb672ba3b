// GELU: y = x * P(X <= x), X normally distributed, or its approximation by tanh.
#include "layers/activation.h"

namespace crema {

REGISTER_LAYER(GELU, ActivationLayer, "gelu_param");

}  // namespace crema
