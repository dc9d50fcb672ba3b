#include "cuda/elementwise.h"
#include "cuda/operations.h"
#include "cuda/suppression.h"
#include "ops/region_proposal_formulas.h"

namespace crema::cuda {

namespace {

using proposal::Scratch;

constexpr unsigned kImageThreads = 1024;  // of the block that has an image

int64_t SlotsOf(const ProposalProblem& p) { return SuppressionSlots(proposal::SuppressionOf(p)); }

// The scratch memory of all images: boxes of candidates, what ops/region_proposal_formulas.h has, overlaps.
struct Workspace {
  BoundingBox* boxes;
  std::byte* of_images;
  float* overlaps;

  static size_t Boxes(const ProposalProblem& p) {
    return static_cast<size_t>(p.images * p.top_k) * sizeof(BoundingBox);
  }
  static size_t OfImages(const ProposalProblem& p) {
    return static_cast<size_t>(p.images) * Scratch::Bytes(p, SlotsOf(p));
  }
  static size_t Bytes(const ProposalProblem& p) {
    return Boxes(p) + OfImages(p) + static_cast<size_t>(p.images * p.top_k) * sizeof(float);
  }
  Workspace(const ProposalProblem& p, std::byte* memory)
      : boxes(reinterpret_cast<BoundingBox*>(memory)),
        of_images(memory + Boxes(p)),
        overlaps(reinterpret_cast<float*>(of_images + OfImages(p))) {}
};

struct RankAnchor {
  ProposalProblem p;
  ProposalInputs inputs;
  int64_t slots;
  std::byte* workspace;

  __device__ void operator()(int64_t i) const {
    const int64_t image = i / p.anchors.count(), anchor = i % p.anchors.count();
    const Scratch scratch = Scratch::In(p, slots, workspace, image);
    scratch.ranks[anchor] = proposal::Candidate(p, inputs, image, anchor, &scratch.boxes[anchor]);
  }
};

// A block for each image.
__global__ void __launch_bounds__(kImageThreads)
    WriteRegions(ProposalProblem p, Suppression s, ProposalInputs inputs, int64_t slots, Workspace workspace,
                 float* regions, float* scores) {
  const int64_t image = blockIdx.x;
  const Scratch scratch = Scratch::In(p, slots, workspace.of_images, image);
  const int kept = SuppressByBlock(
      s, [&](int64_t anchor) { return scratch.ranks[anchor]; }, [&](int64_t anchor) { return scratch.boxes[anchor]; },
      {scratch.candidates, workspace.boxes + image * p.top_k, workspace.overlaps + image * p.top_k}, scratch.kept_ranks,
      scratch.kept_boxes);
  __syncthreads();  // what the first thread kept is seen by all
  const float* const of_anchors = proposal::ScoresOf(p, inputs, image);
  for (int64_t i = threadIdx.x; i < p.keep; i += blockDim.x) {
    const int64_t row = image * p.keep + i;
    float* const region = regions + row * kRegionNumbers;
    if (i < kept) {
      proposal::WriteRegion(image, scratch.kept_boxes[i], region);
    } else {
      for (int k = 0; k < kRegionNumbers; ++k) region[k] = kNoRegion;
    }
    if (scores) scores[row] = i < kept ? of_anchors[suppression::IndexOf(scratch.kept_ranks[i])] : 0.0f;
  }
}

}  // namespace

size_t CudaOperations::ProposalWorkspace(const ProposalProblem& problem) { return Workspace::Bytes(problem); }

void CudaOperations::ProposeRegions(const ProposalProblem& p, const ProposalInputs& inputs, float* regions,
                                    float* scores, std::byte* memory) {
  if (p.images == 0) return;
  const int64_t slots = SlotsOf(p);
  const Workspace workspace(p, memory);
  ForEach(queue(), p.images * p.anchors.count(), RankAnchor{p, inputs, slots, workspace.of_images});
  Launch(queue(), static_cast<unsigned>(p.images), kImageThreads, WriteRegions, p, proposal::SuppressionOf(p), inputs,
         slots, workspace, regions, scores);
}

}  // namespace crema::cuda
