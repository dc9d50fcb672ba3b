#include "ops/detection/region_proposal.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/detection/region_proposal_formulas.h"

namespace crema {

namespace {

using proposal::Scratch;

constexpr int64_t kGrain = 1024;  // anchors worth waking a thread for

int64_t SlotsOf(const ProposalProblem& p) { return suppression::Slots(proposal::SuppressionOf(p)); }

void WriteImage(const ProposalProblem& p, const ProposalInputs& inputs, int64_t image, const Scratch& scratch,
                float* regions, float* scores) {
  const int32_t kept = suppression::Suppress(
      proposal::SuppressionOf(p), [&](int64_t anchor) { return scratch.ranks[anchor]; },
      [&](int64_t anchor) { return scratch.boxes[anchor]; }, scratch.candidates, scratch.kept_ranks,
      scratch.kept_boxes);
  for (int32_t i = 0; i < kept; ++i) {
    proposal::WriteRegion(image, scratch.kept_boxes[i], regions + i * kRegionNumbers);
    if (scores == nullptr) continue;
    scores[i] = proposal::ScoresOf(p, inputs, image)[suppression::IndexOf(scratch.kept_ranks[i])];
  }
  std::fill(regions + kept * kRegionNumbers, regions + p.keep * kRegionNumbers, -1.0f);
  if (scores != nullptr) std::fill(scores + kept, scores + p.keep, 0.0f);
}

}  // namespace

size_t ProposalWorkspace(const ProposalProblem& problem) {
  return static_cast<size_t>(problem.images) * Scratch::Bytes(problem, SlotsOf(problem));
}

void ProposeRegions(const ProposalProblem& p, const ProposalInputs& inputs, float* regions, float* scores,
                    std::byte* workspace) {
  const int64_t count = p.anchors.count(), slots = SlotsOf(p);
  ParallelFor(p.images * count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / count, anchor = i % count;
      const Scratch scratch = Scratch::In(p, slots, workspace, image);
      scratch.ranks[anchor] = proposal::Candidate(p, inputs, image, anchor, &scratch.boxes[anchor]);
    }
  });
  ParallelFor(p.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      WriteImage(p, inputs, image, Scratch::In(p, slots, workspace, image), regions + image * p.keep * kRegionNumbers,
                 scores == nullptr ? nullptr : scores + image * p.keep);
    }
  });
}

}  // namespace crema
