#include <algorithm>

#include "cuda/arrays/elementwise.h"
#include "cuda/detection/suppression.h"
#include "cuda/operations.h"
#include "ops/detection/region_proposal_formulas.h"

// There are few images, and thousands of candidates of each, so candidates are compared by the whole GPU: a band of
// them at a time with all that come after, into bits. A block of each image then walks over the band and keeps what
// none before it covers. Where enough are kept, later bands do nothing.

namespace crema::cuda {

namespace {

using proposal::Scratch;

constexpr unsigned kImageThreads = 1024;  // of the block that has an image
constexpr int kBits = 64;                 // candidates of a word
constexpr int64_t kBand = 2048;           // candidates
static_assert(kBand % kThreads == 0 && kThreads % kBits == 0);

int64_t SlotsOf(const ProposalProblem& p) { return SuppressionSlots(proposal::SuppressionOf(p)); }

struct Progress {
  int32_t candidates, kept;
};

// The scratch memory of an image beside what ops/detection/region_proposal_formulas.h has.
struct Candidates {
  BoundingBox* boxes;  // by falling rank
  uint64_t* covers;    // of the band's candidates: whom each covers, in Workspace::Words(p) words
  uint64_t* covered;   // whom those that are kept cover
  Progress* progress;
};

// The scratch memory of all images.
struct Workspace {
  BoundingBox* boxes;
  std::byte* of_images;
  uint64_t *covers, *covered;
  Progress* progress;

  CREMA_HOST_DEVICE static int64_t Words(const ProposalProblem& p) { return (p.top_k + kBits - 1) / kBits; }
  CREMA_HOST_DEVICE static int64_t Band(const ProposalProblem& p) { return p.top_k < kBand ? p.top_k : kBand; }
  static size_t Boxes(const ProposalProblem& p) {
    return static_cast<size_t>(p.images * p.top_k) * sizeof(BoundingBox);
  }
  static size_t OfImages(const ProposalProblem& p) {
    return static_cast<size_t>(p.images) * Scratch::Bytes(p, SlotsOf(p));
  }
  static size_t Bytes(const ProposalProblem& p) {
    const size_t words = static_cast<size_t>((Band(p) + 1) * Words(p)) * sizeof(uint64_t);
    return Boxes(p) + OfImages(p) + static_cast<size_t>(p.images) * (words + sizeof(Progress));
  }
  Workspace(const ProposalProblem& p, std::byte* memory)
      : boxes(reinterpret_cast<BoundingBox*>(memory)),
        of_images(memory + Boxes(p)),
        covers(reinterpret_cast<uint64_t*>(of_images + OfImages(p))),
        covered(covers + p.images * Band(p) * Words(p)),
        progress(reinterpret_cast<Progress*>(covered + p.images * Words(p))) {}

  __device__ Candidates Of(const ProposalProblem& p, int64_t image) const {
    return {boxes + image * p.top_k, covers + image * Band(p) * Words(p), covered + image * Words(p), progress + image};
  }
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
    SortCandidates(ProposalProblem p, Suppression s, int64_t slots, Workspace workspace) {
  const Scratch scratch = Scratch::In(p, slots, workspace.of_images, blockIdx.x);
  const Candidates of_image = workspace.Of(p, blockIdx.x);
  const int count = SortCandidatesByBlock(
      s, [&](int64_t anchor) { return scratch.ranks[anchor]; }, scratch.candidates);
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    of_image.boxes[i] = scratch.boxes[suppression::IndexOf(scratch.candidates[i])];
  }
  for (int64_t word = threadIdx.x; word < Workspace::Words(p); word += blockDim.x) of_image.covered[word] = 0;
  if (threadIdx.x == 0) *of_image.progress = {count, 0};
}

// A block for each word of some candidates of the band of an image: a thread has one of these.
__global__ void __launch_bounds__(kThreads)
    CompareBand(ProposalProblem p, Suppression s, Workspace workspace, int64_t begin, int64_t pieces) {
  __shared__ BoundingBox others[kBits];
  const int64_t words = Workspace::Words(p);
  const int64_t word = blockIdx.x % words, piece = blockIdx.x / words % pieces, image = blockIdx.x / words / pieces;
  const Candidates of_image = workspace.Of(p, image);
  const Progress progress = *of_image.progress;
  const int64_t first = begin + piece * kThreads, first_other = word * kBits;
  if (progress.kept >= s.room || first >= progress.candidates || first_other >= progress.candidates) return;
  if (first_other + kBits - 1 <= first) return;  // none of these comes after
  if (threadIdx.x < kBits && first_other + threadIdx.x < progress.candidates) {
    others[threadIdx.x] = internal::LoadBox(of_image.boxes + first_other + threadIdx.x);
  }
  __syncthreads();
  const int64_t own = first + threadIdx.x;
  if (own >= progress.candidates || (of_image.covered[own / kBits] >> own % kBits & 1) != 0) return;
  const BoundingBox box = internal::LoadBox(of_image.boxes + own);
  uint64_t covers = 0;
  for (int i = 0; i < kBits; ++i) {
    if (first_other + i <= own || first_other + i >= progress.candidates) continue;
    const float overlap = boxes::Overlap(others[i], box);
    const bool is_covered = (overlap == overlap ? overlap : 2.0f) > s.most_overlap;  // a NaN covers, too
    covers |= static_cast<uint64_t>(is_covered) << i;
  }
  of_image.covers[(own - begin) * words + word] = covers;
}

// A block for each image.
__global__ void __launch_bounds__(kThreads)
    KeepOfBand(ProposalProblem p, Suppression s, int64_t slots, Workspace workspace, int64_t begin) {
  constexpr int kAtOnce = 8;  // words that are on their way at a time
  __shared__ uint64_t among[kBits];
  __shared__ int order[kBits], found;
  const Scratch scratch = Scratch::In(p, slots, workspace.of_images, blockIdx.x);
  const Candidates of_image = workspace.Of(p, blockIdx.x);
  const int64_t words = Workspace::Words(p), candidates = of_image.progress->candidates;
  const int64_t used = (candidates + kBits - 1) / kBits, end = begin + kBand < candidates ? begin + kBand : candidates;
  int64_t kept = of_image.progress->kept;
  for (int64_t first = begin; first < end && kept < s.room; first += kBits) {
    const int64_t word = first / kBits;
    const uint64_t* const covers = of_image.covers + (first - begin) * words;
    if (threadIdx.x < kBits) among[threadIdx.x] = first + threadIdx.x < end ? covers[threadIdx.x * words + word] : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t gone = of_image.covered[word];
      int count = 0;
      for (int i = 0; i < kBits; ++i) {
        if (first + i >= end || kept + count >= s.room || (gone >> i & 1) != 0) continue;
        order[count++] = i;
        gone |= among[i];
      }
      found = count;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < found; i += blockDim.x) {
      scratch.kept_boxes[kept + i] = of_image.boxes[first + order[i]];
      scratch.kept_ranks[kept + i] = scratch.candidates[first + order[i]];
    }
    for (int64_t later = word + 1 + threadIdx.x; later < used; later += blockDim.x) {
      uint64_t gone = of_image.covered[later];
      for (int i = 0; i < found; i += kAtOnce) {
        uint64_t read[kAtOnce];
        CREMA_UNROLL
        for (int k = 0; k < kAtOnce; ++k) read[k] = covers[order[i + k < found ? i + k : i] * words + later];
        CREMA_UNROLL
        for (int k = 0; k < kAtOnce; ++k) gone |= read[k];
      }
      of_image.covered[later] = gone;
    }
    kept += found;
    __syncthreads();  // before the shared memory is written again
  }
  if (threadIdx.x == 0) of_image.progress->kept = static_cast<int32_t>(kept);
}

// A block for each image.
__global__ void __launch_bounds__(kImageThreads) WriteRegions(ProposalProblem p, ProposalInputs inputs, int64_t slots,
                                                              Workspace workspace, float* regions, float* scores) {
  const int64_t image = blockIdx.x;
  const Scratch scratch = Scratch::In(p, slots, workspace.of_images, image);
  const int kept = workspace.Of(p, image).progress->kept;
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
  const Suppression s = proposal::SuppressionOf(p);
  const Workspace workspace(p, memory);
  const auto images = static_cast<unsigned>(p.images);
  ForEach(queue(), p.images * p.anchors.count(), RankAnchor{p, inputs, slots, workspace.of_images});
  Launch(queue(), images, kImageThreads, SortCandidates, p, s, slots, workspace);
  for (int64_t begin = 0; begin < p.top_k; begin += kBand) {
    const int64_t pieces = (std::min(kBand, p.top_k - begin) + kThreads - 1) / kThreads;
    const int64_t blocks = p.images * pieces * Workspace::Words(p);
    Launch(queue(), static_cast<unsigned>(blocks), kThreads, CompareBand, p, s, workspace, begin, pieces);
    Launch(queue(), images, kThreads, KeepOfBand, p, s, slots, workspace, begin);
  }
  Launch(queue(), images, kImageThreads, WriteRegions, p, inputs, slots, workspace, regions, scores);
}

}  // namespace crema::cuda
