// Which regions of images a net learns from: those that it is most wrong about (Shrivastava et al., "Training
// Region-based Object Detectors with Online Hard Example Mining", 2016), in the manner of R-FCN. f32 in CPU memory; one
// thread; nothing is allocated.
#ifndef CREMA_OPS_DETECTION_HARD_REGIONS_H_
#define CREMA_OPS_DETECTION_HARD_REGIONS_H_

#include <cstddef>
#include <cstdint>

namespace crema {

struct HardRegionProblem {
  int64_t regions = 0;    // fewer than 2^32 - 1
  int64_t weights = 0;    // of each region
  int64_t per_image = 1;  // how many of an image are kept
  float ignore = -1;      // the label of the others
};

struct HardRegionInputs {
  const float* regions;  // regions x kRegionNumbers; those whose image is below 0 are none and never kept
  const float* loss;     // of each region, at least 0; a NaN is greater than all, so that it is seen
  const float* label;    // of each region
  const float* weight;   // regions x weights
};

size_t HardRegionWorkspace(const HardRegionProblem& problem);
// Of equal losses the lower index is kept. labels, weights: as large as the inputs; those of regions that are not kept
// are `ignore` and 0.
void KeepHardRegions(const HardRegionProblem& problem, const HardRegionInputs& inputs, float* labels, float* weights,
                     std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_HARD_REGIONS_H_
