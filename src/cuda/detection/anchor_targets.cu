#include <algorithm>

#include "cuda/arrays/reduce.h"
#include "cuda/detection/rank_cut.h"
#include "cuda/operations.h"
#include "ops/detection/region_targets_formulas.h"

namespace crema::cuda {

namespace {

using region_targets::AnchorScratch;
using region_targets::Kind;
using region_targets::Match;

constexpr unsigned kImageThreads = 1024;  // at most, of the block that has an image

// Not inlined, so that the same overlap comes out each time.
__attribute__((noinline)) __device__ float OverlapOf(BoundingBox anchor, BoundingBox object) {
  return boxes::Overlap(anchor, object);
}

// One image, by the whole block.
struct Image {
  const AnchorTargetProblem& p;
  ScaledImage extent;
  const float* objects;
  float* labels;
  uint64_t* ranks;
  int32_t* match;
  float* best;

  // Calls body(row, its box) for each object; the same in all threads.
  template <typename Body>
  __device__ void ForEachObject(const Body& body) const {
    for (int64_t row = 0; row < p.objects.rows; ++row) {
      const float* const object = objects + row * kRegionObjectNumbers;
      if (region_targets::IsObject(p.objects, object)) body(row, anchors::FromPixels(object));
    }
  }

  __device__ void FindBest() const {
    ForEachObject([&](int64_t row, const BoundingBox& object) {
      float largest = 0;
      for (int64_t i = threadIdx.x; i < p.anchors.count(); i += blockDim.x) {
        const BoundingBox anchor = anchors::BoxOf(p.anchors, i);
        if (region_targets::IsInside(p, extent, anchor)) largest = Larger()(largest, OverlapOf(anchor, object));
      }
      largest = ReduceBlock(largest, 0.0f, Larger());
      if (threadIdx.x == 0) best[row] = largest;
    });
    __syncthreads();
  }

  __device__ float Label(int64_t anchor) const {
    const BoundingBox box = anchors::BoxOf(p.anchors, anchor);
    match[anchor] = -1;
    if (!region_targets::IsInside(p, extent, box)) return -1;
    Match found;
    bool is_best = false;
    ForEachObject([&](int64_t row, const BoundingBox& object) {
      const float overlap = OverlapOf(box, object);
      is_best = is_best || (overlap > 0 && overlap == best[row]);
      if (overlap > found.overlap) found = {overlap, static_cast<int32_t>(row)};
    });
    match[anchor] = found.object;
    return region_targets::LabelOf(p, found, is_best);
  }

  // What an anchor's rank must be at least, if it is one of `keep` of `count` whose ranks come after `before` others.
  __device__ uint64_t LeastRank(int64_t before, int64_t count, int64_t keep) const {
    if (keep == count) return 0;
    if (keep == 0) return ~uint64_t{0};
    const uint64_t* const of_anchors = ranks;
    return FindCut(
        p.anchors.count(), [of_anchors](int64_t i) { return of_anchors[i]; }, static_cast<int>(before + keep));
  }
};

// A block for each image.
__global__ void __launch_bounds__(kImageThreads)
    MakeTargets(AnchorTargetProblem p, uint64_t seed, uint32_t drawer, const PassState* state, const float* info,
                const float* objects, AnchorTargets targets, AnchorScratch scratch) {
  const int64_t index = blockIdx.x, anchors = p.anchors.count(), first = index * anchors, rows = p.objects.rows;
  const RandomStream random(seed, StreamId(drawer, state->pass));
  const Image image = {p,
                       anchors::InfoOf(info, index),
                       objects + index * rows * kRegionObjectNumbers,
                       targets.labels + first,
                       scratch.ranks + first,
                       scratch.match + first,
                       scratch.best + index * rows};
  image.FindBest();
  int64_t objects_found = 0, background = 0;
  for (int64_t i = threadIdx.x; i < anchors; i += blockDim.x) {
    const float label = image.Label(i);
    const Kind kind = label == 1.0f ? Kind::kObject : Kind::kBackground;
    objects_found += label == 1.0f;
    background += label == 0.0f;
    image.labels[i] = label;
    image.ranks[i] = label < 0.0f ? 0 : region_targets::RankOf(kind, random, static_cast<uint64_t>(first + i), i);
  }
  objects_found = SumBlock(objects_found);  // which waits for what the threads wrote, too
  background = SumBlock(background);
  const int64_t kept_objects = region_targets::Less(p.foreground, objects_found);
  const int64_t kept_background = region_targets::Less(p.batch - kept_objects, background);
  const uint64_t least_object = image.LeastRank(0, objects_found, kept_objects);
  const uint64_t least_background = image.LeastRank(objects_found, background, kept_background);
  const float share = region_targets::ShareOf(kept_objects + kept_background);
  for (int64_t i = threadIdx.x; i < anchors; i += blockDim.x) {
    const float label = image.labels[i];
    if (label >= 0.0f && image.ranks[i] < (label == 1.0f ? least_object : least_background)) image.labels[i] = -1;
    region_targets::WriteAnchor(p, image.objects, index, i, image.match[i], share, targets);
  }
}

}  // namespace

size_t CudaOperations::AnchorTargetWorkspace(const AnchorTargetProblem& problem) {
  return region_targets::AnchorScratchBytes(problem);
}

void CudaOperations::MakeAnchorTargets(const AnchorTargetProblem& problem, const RandomStream& random,
                                       const float* info, const float* objects, const AnchorTargets& targets,
                                       std::byte* workspace) {
  const int64_t images = problem.objects.images, whole_warps = (problem.anchors.count() + 31) / 32 * 32;
  if (images == 0) return;
  Launch(queue(), static_cast<unsigned>(images),
         static_cast<unsigned>(std::clamp<int64_t>(whole_warps, 32, kImageThreads)), MakeTargets, problem,
         random.seed(), static_cast<uint32_t>(random.stream() >> 40), gpu_.state(), info, objects, targets,
         region_targets::AnchorScratchIn(problem, workspace));
}

}  // namespace crema::cuda
