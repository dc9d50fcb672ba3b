// The factor of the loss that keeps gradients in half precision within its range (Micikevicius et al., "Mixed precision
// training", ICLR 2018), and how it is found while training.
#ifndef CREMA_OPS_UPDATES_LOSS_SCALE_H_
#define CREMA_OPS_UPDATES_LOSS_SCALE_H_

#include <cstdint>

#include "ops/arrays/functors.h"

namespace crema {

inline constexpr float kFirstLossScale = 65536, kLargestLossScale = 0x1p24f;
// Below this it is not the range that makes gradients infinite.
inline constexpr float kSmallestLossScale = 0x1p-14f;
// Updates in a row after which a larger scale is tried.
inline constexpr uint32_t kLossScaleUpdates = 2000;

struct LossScale {
  float scale = 1;
  uint32_t updates = 0;     // in a row since it changed
  uint32_t overflowed = 0;  // whether a gradient of the latest update was not finite
  uint32_t not_finite = 0;  // the same of the update that is under way
};

// The end of an update; it was left out where a gradient was not finite.
CREMA_FORMULA void StepLossScale(bool adapts, LossScale* loss_scale) {
  loss_scale->overflowed = loss_scale->not_finite;
  loss_scale->not_finite = 0;
  if (!adapts) return;
  if (loss_scale->overflowed) {
    loss_scale->scale /= 2;
    loss_scale->updates = 0;
  } else if (++loss_scale->updates >= kLossScaleUpdates) {
    if (loss_scale->scale < kLargestLossScale) loss_scale->scale *= 2;
    loss_scale->updates = 0;
  }
}

}  // namespace crema

#endif  // CREMA_OPS_UPDATES_LOSS_SCALE_H_
