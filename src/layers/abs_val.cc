// AbsVal: y = |x|, whose gradient is 0 at 0.
#include "layers/activation.h"

namespace crema {

REGISTER_LAYER(AbsVal, ActivationLayer);

}  // namespace crema
