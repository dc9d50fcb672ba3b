// Power: y = (shift + scale * x) ^ power.
#include "layers/activation.h"

namespace crema {

REGISTER_LAYER(Power, ActivationLayer, "power_param");

}  // namespace crema
