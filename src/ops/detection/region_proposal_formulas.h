// What proposing regions shares between the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_REGION_PROPOSAL_FORMULAS_H_
#define CREMA_OPS_DETECTION_REGION_PROPOSAL_FORMULAS_H_

#include <cstddef>
#include <cstdint>

#include "ops/detection/region_proposal.h"
#include "ops/detection/suppression.h"
#include "ops/sampling/roi_pooling.h"

namespace crema::proposal {

inline Suppression SuppressionOf(const ProposalProblem& p) {
  return {p.anchors.count(), p.top_k, p.most_overlap, 1, p.keep};
}

CREMA_FORMULA const float* ScoresOf(const ProposalProblem& p, const ProposalInputs& inputs, int64_t image) {
  return inputs.scores + (2 * image + 1) * p.anchors.count();
}

// The region an anchor becomes; its rank, 0 where it is none.
CREMA_FORMULA uint64_t Candidate(const ProposalProblem& p, const ProposalInputs& inputs, int64_t image, int64_t anchor,
                                 BoundingBox* box) {
  const Anchors& a = p.anchors;
  const ScaledImage info = anchors::InfoOf(inputs.info, image);
  const float* offsets = inputs.offsets + image * 4 * a.count() + anchors::FirstNumber(a, anchor);
  const int64_t plane = a.pixels();
  *box = anchors::Inside(anchors::Moved(anchors::BoxOf(a, anchor), {{1.0f, 1.0f, 1.0f, 1.0f}},
                                        {offsets[0], offsets[plane], offsets[2 * plane], offsets[3 * plane]}),
                         info);
  const float score = ScoresOf(p, inputs, image)[anchor], least = p.min_size * info.scale;
  const bool counts = (box->xmax - box->xmin >= least) & (box->ymax - box->ymin >= least) & (score == score);
  return counts ? suppression::RankOf(score, anchor) : 0;
}

// Row number `row` of an image, whose region is that box.
CREMA_FORMULA void WriteRegion(int64_t image, const BoundingBox& box, float* region) {
  region[0] = static_cast<float>(image);
  region[1] = box.xmin;
  region[2] = box.ymin;
  region[3] = box.xmax - 1.0f;
  region[4] = box.ymax - 1.0f;
}

// The scratch memory of an image. Arrays of larger elements come first, so that all are aligned.
struct Scratch {
  BoundingBox *boxes, *kept_boxes;  // of all anchors; of what is kept
  uint64_t *ranks, *kept_ranks, *candidates;

  static size_t Bytes(const ProposalProblem& p, int64_t candidates) {
    const auto boxes = static_cast<size_t>(p.anchors.count() + p.keep);
    return boxes * (sizeof(BoundingBox) + sizeof(uint64_t)) + static_cast<size_t>(candidates) * sizeof(uint64_t);
  }
  CREMA_HOST_DEVICE static Scratch In(const ProposalProblem& p, int64_t candidates, std::byte* workspace,
                                      int64_t image) {
    const int64_t count = p.anchors.count(), boxes = count + p.keep;
    Scratch s{};
    s.boxes = reinterpret_cast<BoundingBox*>(workspace) + image * boxes;
    s.kept_boxes = s.boxes + count;
    s.ranks = reinterpret_cast<uint64_t*>(reinterpret_cast<BoundingBox*>(workspace) + p.images * boxes) +
              image * (boxes + candidates);
    s.kept_ranks = s.ranks + count;
    s.candidates = s.kept_ranks + p.keep;
    return s;
  }
};

}  // namespace crema::proposal

#endif  // CREMA_OPS_DETECTION_REGION_PROPOSAL_FORMULAS_H_
