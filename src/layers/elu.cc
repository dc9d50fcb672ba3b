// ELU: y = x for x > 0, else alpha * (e^x - 1) (Clevert, Unterthiner and Hochreiter, 2015).
#include "layers/activation.h"

namespace crema {

REGISTER_LAYER(ELU, ActivationLayer, "elu_param");

}  // namespace crema
