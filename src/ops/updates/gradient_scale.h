// A factor of gradients that changes while a net trains, for CPUs and GPUs.
#ifndef CREMA_OPS_UPDATES_GRADIENT_SCALE_H_
#define CREMA_OPS_UPDATES_GRADIENT_SCALE_H_

#include <cmath>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// From `lower` in pass 0 towards `upper`, along lower + (upper - lower) * (2 / (1 + e^(-steepness * p)) - 1), where p
// is the pass divided by `passes`, at most 1 (Ganin and Lempitsky, "Unsupervised Domain Adaptation by Backpropagation",
// 2015).
struct GradientScale {
  float lower = 0, upper = 1, steepness = 10;
  float passes = 1;  // at least 1

  CREMA_HOST_DEVICE float FactorOf(uint64_t pass) const {
    const float share = static_cast<float>(pass) / passes;
    const float progress = share < 1 ? share : 1.0f;
    return lower + (upper - lower) * (2 / (1 + expf(-steepness * progress)) - 1);
  }
};

}  // namespace crema

#endif  // CREMA_OPS_UPDATES_GRADIENT_SCALE_H_
