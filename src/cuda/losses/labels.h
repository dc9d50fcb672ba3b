// Labels on a GPU.
#ifndef CREMA_CUDA_LOSSES_LABELS_H_
#define CREMA_CUDA_LOSSES_LABELS_H_

#include <cuda_runtime.h>

#include "ops/losses/label_formulas.h"

namespace crema::cuda {

// Labels that FindBadLabel reported do not count either: the host learns of them when the pass is over.
__device__ inline bool Counts(const LabelRule& rule, int64_t classes, float label) {
  return !labels::IsIgnored(rule, label) && !labels::IsBad(rule, classes, label);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_LOSSES_LABELS_H_
