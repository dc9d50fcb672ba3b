// What a net that is used, not trained, lacks where files of weights have nothing for some of its layers.
#ifndef CREMA_RUNTIME_MISSING_WEIGHTS_H_
#define CREMA_RUNTIME_MISSING_WEIGHTS_H_

#include <string>
#include <vector>

#include "crema/net.h"

namespace crema {

// Of the layers `fresh` (WeightsReport::fresh) those that compute nothing of use with what their fillers make, in that
// order: parameters that training finds, such as gaussian weights or the running statistics of BatchNorm. Not those
// whose fillers are what the layer is to compute with: "bilinear" or "values" in its first blob, or constants, not all
// 0, that lr_mult: 0 keeps.
std::vector<std::string> NeededWeights(const Net& net, const std::vector<std::string>& fresh);

}  // namespace crema

#endif  // CREMA_RUNTIME_MISSING_WEIGHTS_H_
