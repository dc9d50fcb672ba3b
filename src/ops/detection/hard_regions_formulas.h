// What finding hard regions shares between the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_HARD_REGIONS_FORMULAS_H_
#define CREMA_OPS_DETECTION_HARD_REGIONS_FORMULAS_H_

#include <cstdint>

#include "ops/detection/hard_regions.h"
#include "ops/detection/suppression.h"
#include "ops/sampling/roi_pooling.h"

namespace crema::hard_regions {

CREMA_FORMULA float ImageOf(const HardRegionInputs& inputs, int64_t region) {
  return inputs.regions[region * kRegionNumbers];
}

// Greater for the region that is kept first.
CREMA_FORMULA uint64_t RankOf(const HardRegionInputs& inputs, int64_t region) {
  return suppression::RankOf(inputs.loss[region], region);
}

// What is said of a region.
CREMA_FORMULA void Write(const HardRegionProblem& p, const HardRegionInputs& inputs, int64_t region, bool kept,
                         float* labels, float* weights) {
  labels[region] = kept ? inputs.label[region] : p.ignore;
  for (int64_t i = region * p.weights; i < (region + 1) * p.weights; ++i) weights[i] = kept ? inputs.weight[i] : 0.0f;
}

}  // namespace crema::hard_regions

#endif  // CREMA_OPS_DETECTION_HARD_REGIONS_FORMULAS_H_
