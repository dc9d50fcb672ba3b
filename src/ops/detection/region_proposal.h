// Regions that may hold an object, from what a net says of anchors (Ren et al., "Faster R-CNN", 2015, section 3.1).
// Plain f32 in CPU memory.
#ifndef CREMA_OPS_DETECTION_REGION_PROPOSAL_H_
#define CREMA_OPS_DETECTION_REGION_PROPOSAL_H_

#include <cstddef>
#include <cstdint>

#include "ops/detection/anchors.h"

namespace crema {

struct ProposalProblem {
  int64_t images = 1;
  Anchors anchors;      // fewer than 2^31
  float min_size = 16;  // sides of a region, in pixels of the original image
  // Candidates of an image, 1 to all anchors: those of the highest scores, the lower anchor first among equals. A score
  // or a box that is a NaN is none.
  int64_t top_k = 1;
  // By falling score a candidate is kept unless one that is overlaps it by more than this.
  float most_overlap = 0.7f;
  int64_t keep = 1;  // regions of an image

  int64_t rows() const { return images * keep; }
};

struct ProposalInputs {
  const float* scores;   // images x 2 x shapes x height x width: of being background, then of being an object
  const float* offsets;  // images x 4 shapes x height x width
  const float* info;     // images x ScaledImage::kNumbers
};

// Scratch bytes that ProposeRegions needs, aligned to 64 bytes.
size_t ProposalWorkspace(const ProposalProblem& problem);
// Overwrites all rows x kRegionNumbers: the regions of each image by falling score, then rows of -1; and, unless null,
// all rows of scores, 0 where there is no region. Threaded; allocates nothing.
void ProposeRegions(const ProposalProblem& problem, const ProposalInputs& inputs, float* regions, float* scores,
                    std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_REGION_PROPOSAL_H_
