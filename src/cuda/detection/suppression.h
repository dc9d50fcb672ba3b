// Non-maximum suppression by the threads of one block (ops/detection/suppression.h).
#ifndef CREMA_CUDA_DETECTION_SUPPRESSION_H_
#define CREMA_CUDA_DETECTION_SUPPRESSION_H_

#include <cstdint>

#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/detection/rank_cut.h"
#include "ops/detection/suppression.h"

namespace crema::cuda {

// Places for ranks that SuppressByBlock needs: they are sorted in as many as a power of two.
inline int64_t SuppressionSlots(const Suppression& s) {
  int64_t ranks = 2;
  while (ranks < s.top_k) ranks *= 2;
  return ranks;
}

namespace internal {

// Bitonic sort, falling, by the whole block; `count` is a power of two.
__device__ inline void SortRanks(uint64_t* ranks, int count) {
  for (int run = 2; run <= count; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const int low = i / distance * distance * 2 + i % distance, high = low + distance;
        const bool falls = (low & run) == 0;
        const uint64_t a = ranks[low], b = ranks[high];
        if ((a < b) == falls) {
          ranks[low] = b;
          ranks[high] = a;
        }
      }
      __syncthreads();
    }
  }
}

__device__ inline BoundingBox LoadBox(const BoundingBox* from) {
  const Lanes<4, float> corners = LoadLanes<4>(&from->xmin, 0);
  return {corners.values[0], corners.values[1], corners.values[2], corners.values[3]};
}

}  // namespace internal

// The ranks of the candidates, falling, into `ranks`, which has SuppressionSlots places; returns how many there are.
// rank_of(index) is 0 for a box that is none. All threads of the block must call, and get the same.
template <typename RankOf>
__device__ int SortCandidatesByBlock(const Suppression& s, const RankOf& rank_of, uint64_t* ranks) {
  __shared__ int found;
  int count = 0;
  for (int64_t box = threadIdx.x; box < s.boxes; box += blockDim.x) count += rank_of(box) != 0 ? 1 : 0;
  count = SumBlock(count);
  uint64_t cut = 1;
  if (count > s.top_k) {
    count = static_cast<int>(s.top_k);
    cut = FindCut(s.boxes, rank_of, count);
  }

  int sorted = 1;
  while (sorted < count) sorted *= 2;
  for (int i = count + static_cast<int>(threadIdx.x); i < sorted; i += blockDim.x) ranks[i] = 0;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (int64_t box = threadIdx.x; box < s.boxes; box += blockDim.x) {
    const uint64_t rank = rank_of(box);
    if (rank >= cut) ranks[atomicAdd(&found, 1)] = rank;  // in any order: they are sorted
  }
  __syncthreads();
  internal::SortRanks(ranks, sorted);
  return count;
}

// Scratch of one block: SuppressionSlots ranks, top_k boxes and as many overlaps.
struct SuppressionScratch {
  uint64_t* ranks;
  BoundingBox* boxes;
  float* overlaps;  // the largest with what is kept
};

// Writes the ranks and boxes of what is kept, by falling rank, and returns how many there are. rank_of(index) is 0 for
// a box that is none. All threads of the block must call, and get the same.
template <typename RankOf, typename BoxOf>
__device__ int SuppressByBlock(const Suppression& s, const RankOf& rank_of, const BoxOf& box_of,
                               const SuppressionScratch& scratch, uint64_t* kept_ranks, BoundingBox* kept_boxes) {
  uint64_t* const ranks = scratch.ranks;
  const int count = SortCandidatesByBlock(s, rank_of, ranks);
  BoundingBox* const boxes = scratch.boxes;
  float* const overlaps = scratch.overlaps;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    boxes[i] = box_of(suppression::IndexOf(ranks[i]));
    overlaps[i] = 0;
  }
  __syncthreads();
  int kept = 0;
  float limit = s.most_overlap;
  for (int i = 0; i < count && kept < s.room; ++i) {
    if (overlaps[i] > limit) continue;
    const BoundingBox box = internal::LoadBox(boxes + i);
    for (int j = i + 1 + static_cast<int>(threadIdx.x); j < count; j += blockDim.x) {
      const float overlap = boxes::Overlap(internal::LoadBox(boxes + j), box);
      if (!(overlap <= overlaps[j])) overlaps[j] = overlap == overlap ? overlap : 2.0f;  // a NaN covers, too
    }
    if (threadIdx.x == 0) {
      kept_boxes[kept] = box;
      kept_ranks[kept] = ranks[i];
    }
    ++kept;
    if (limit > 0.5f) limit *= s.eta;
    __syncthreads();
  }
  return kept;
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DETECTION_SUPPRESSION_H_
