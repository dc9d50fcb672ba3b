// Nets that propose regions and end in scores and offsets of these, as Faster R-CNN and R-FCN do.
#ifndef CREMA_INFERENCE_REGION_NET_H_
#define CREMA_INFERENCE_REGION_NET_H_

#include "inference/scoring_net.h"

namespace crema {

// Adds the DetectionOutput layer that such a net lacks, since its authors made objects of regions outside of it: with
// their threshold (0.3) for boxes that cover each other. Nets that propose no regions, or have that layer, stay as they
// are. Throws UserError where it is not clear which of the net's outputs are scores and offsets.
void AddDetectionOutput(const NetOptions& options, ScoringNet* scoring);

}  // namespace crema

#endif  // CREMA_INFERENCE_REGION_NET_H_
