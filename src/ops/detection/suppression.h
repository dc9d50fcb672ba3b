// Non-maximum suppression: of boxes that cover each other the ones of the highest scores are kept. The ranks and sizes
// are shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_SUPPRESSION_H_
#define CREMA_OPS_DETECTION_SUPPRESSION_H_

#include <algorithm>
#include <cstdint>
#include <functional>

#include "ops/arrays/arg_max.h"
#include "ops/detection/box_formulas.h"

namespace crema {

struct Suppression {
  int64_t boxes = 1;  // below 2^31
  // Candidates, 1 to all boxes: those of the highest ranks.
  int64_t top_k = 1;
  // By falling rank a candidate is kept unless one that is overlaps it by more than this; multiplied by eta after each
  // that is kept while it is above 0.5.
  float most_overlap = 0.3f, eta = 1;
  int64_t room = 1;  // no more are kept
};

namespace suppression {

// Greater for the box that comes first: that of the higher score, of equals the lower index. Above 0.
CREMA_FORMULA uint64_t RankOf(float score, int64_t box) {
  return formula::RankOf(score, 0xfffffffeu - static_cast<uint32_t>(box));
}
CREMA_FORMULA int64_t IndexOf(uint64_t rank) { return 0xfffffffe - formula::IndexOfRank(rank); }
// Of the score alone, in its order.
CREMA_FORMULA uint32_t LevelOf(uint64_t rank) { return static_cast<uint32_t>(rank >> 32); }

// Ranks that Suppress takes for scratch, an even number: twice as many as are wanted; the better half is found when
// they are full.
inline int64_t Slots(const Suppression& s) { return (std::min(s.boxes, 2 * s.top_k) + 1) / 2 * 2; }

// Leaves the best top_k of `count` ranks in front, in no order, and returns how many there are.
int32_t KeepBest(const Suppression& s, uint64_t* ranks, int32_t count);
// Whether one of the boxes overlaps this one by more than `limit`.
bool IsCovered(const BoundingBox& box, const BoundingBox* by, int32_t count, float limit);

// The candidates by falling rank, in `ranks`; returns how many there are. rank_of(index) is 0 for a box that is none.
template <typename RankOf>
int32_t FindCandidates(const Suppression& s, const RankOf& rank_of, uint64_t* ranks) {
  const int64_t slots = Slots(s);
  int32_t count = 0;
  uint64_t above = 0;  // what a rank must be above to be among the best so far
  for (int64_t box = 0; box < s.boxes; ++box) {
    const uint64_t rank = rank_of(box);
    if (rank <= above) continue;
    if (count == slots) {
      count = KeepBest(s, ranks, count);
      above = ranks[count - 1];
      if (rank <= above) continue;
    }
    ranks[count++] = rank;
  }
  count = KeepBest(s, ranks, count);
  std::sort(ranks, ranks + count, std::greater<>());
  return count;
}

// Writes the ranks and boxes of what is kept, by falling rank, and returns how many there are. candidates: Slots places
// of scratch. One thread.
template <typename RankOf, typename BoxOf>
int32_t Suppress(const Suppression& s, const RankOf& rank_of, const BoxOf& box_of, uint64_t* candidates,
                 uint64_t* ranks, BoundingBox* boxes) {
  const int32_t count = FindCandidates(s, rank_of, candidates);
  int32_t kept = 0;
  float limit = s.most_overlap;
  for (int32_t i = 0; i < count && kept < s.room; ++i) {
    const BoundingBox box = box_of(IndexOf(candidates[i]));
    if (IsCovered(box, boxes, kept, limit)) continue;
    boxes[kept] = box;
    ranks[kept++] = candidates[i];
    if (limit > 0.5f) limit *= s.eta;
  }
  return kept;
}

}  // namespace suppression
}  // namespace crema

#endif  // CREMA_OPS_DETECTION_SUPPRESSION_H_
