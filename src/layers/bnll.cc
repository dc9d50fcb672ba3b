// BNLL, the binomial normal log likelihood: y = log(1 + e^x), also known as softplus.
#include "layers/activation.h"

namespace crema {

REGISTER_LAYER(BNLL, ActivationLayer);

}  // namespace crema
