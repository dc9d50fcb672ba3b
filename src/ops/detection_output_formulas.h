// What finding objects shares between the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_OUTPUT_FORMULAS_H_
#define CREMA_OPS_DETECTION_OUTPUT_FORMULAS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/arg_max.h"
#include "ops/detection_output.h"

namespace crema::detection {

// Greater for the candidate that comes first; above 0.
CREMA_FORMULA uint64_t RankOf(float score, int64_t prior) {
  return formula::RankOf(score, 0xfffffffeu - static_cast<uint32_t>(prior));
}
CREMA_FORMULA int64_t PriorOf(uint64_t rank) { return 0xfffffffe - formula::IndexOfRank(rank); }
// Of the score alone, in its order.
CREMA_FORMULA uint32_t LevelOf(uint64_t rank) { return static_cast<uint32_t>(rank >> 32); }

// What one list needs while it is filled: places for ranks of candidates, an even number, and, on GPUs, for their boxes
// and overlaps.
struct ListScratch {
  int64_t ranks = 0, boxes = 0;

  int64_t bytes() const {
    return ranks * static_cast<int64_t>(sizeof(uint64_t)) +
           boxes * static_cast<int64_t>(sizeof(BoundingBox) + sizeof(float));
  }
};
// How many lists can be filled at a time: at least `least` or all, and more where that takes some megabytes only.
inline int64_t ListsAtOnce(const DetectionProblem& p, const ListScratch& scratch, int64_t least) {
  constexpr int64_t kBytes = int64_t{32} << 20;
  return std::min(p.images * p.classes, std::max(least, kBytes / scratch.bytes()));
}

// The scratch memory: images x classes lists, and candidates of those that are being filled.
struct Lists {
  int64_t room;        // of a list: the image takes no more of it
  BoundingBox* boxes;  // of what is kept
  uint64_t* ranks;     // of the same, falling
  int32_t* counts;     // by list: kept in it
  int32_t* taken;      // by list: kept in the image; GPU
  int32_t* first_row;  // by list, counted in the image; GPU

  ListScratch scratch;  // how far the following lie apart
  uint64_t* candidates;
  BoundingBox* candidate_boxes;
  float* candidate_overlaps;  // the largest with what is kept

  CREMA_FORMULA uint64_t* RanksOf(int64_t list) const { return ranks + list * room; }
  CREMA_FORMULA BoundingBox* BoxesOf(int64_t list) const { return boxes + list * room; }
};

// Of a class the best `keep` alone can be among the best `keep` of an image.
inline int64_t RoomOf(const DetectionProblem& p) { return std::min(p.top_k, p.keep); }

inline size_t ListBytes(const DetectionProblem& p, const ListScratch& scratch, int64_t at_once) {
  const int64_t list = RoomOf(p) * static_cast<int64_t>(sizeof(uint64_t) + sizeof(BoundingBox)) +
                       3 * static_cast<int64_t>(sizeof(int32_t));
  return static_cast<size_t>(p.images * p.classes * list + at_once * scratch.bytes());
}

// Arrays of larger elements come first, so that all are aligned.
inline Lists ListsIn(const DetectionProblem& p, const ListScratch& scratch, int64_t at_once, std::byte* workspace) {
  const int64_t lists = p.images * p.classes;
  Lists made{};
  made.room = RoomOf(p);
  made.scratch = scratch;
  made.candidates = reinterpret_cast<uint64_t*>(workspace);
  made.candidate_boxes = reinterpret_cast<BoundingBox*>(made.candidates + at_once * scratch.ranks);
  made.boxes = made.candidate_boxes + at_once * scratch.boxes;
  made.ranks = reinterpret_cast<uint64_t*>(made.boxes + lists * made.room);
  made.candidate_overlaps = reinterpret_cast<float*>(made.ranks + lists * made.room);
  made.counts = reinterpret_cast<int32_t*>(made.candidate_overlaps + at_once * scratch.boxes);
  made.taken = made.counts + lists;
  made.first_row = made.taken + lists;
  return made;
}

CREMA_FORMULA BoundingBox BoxOf(const DetectionProblem& p, const DetectionInputs& inputs, int64_t image,
                                int64_t category, int64_t prior) {
  const int64_t at = image * p.priors + prior;
  const float* offset = inputs.offsets + (p.shared_boxes ? at : at * p.classes + category) * 4;
  const float* corner = inputs.priors + prior * 4;
  const float* variance = corner + p.priors * 4;
  const BoxVariance given = p.has_variance ? BoxVariance{{variance[0], variance[1], variance[2], variance[3]}}
                                           : BoxVariance{{1.0f, 1.0f, 1.0f, 1.0f}};
  return boxes::Decode(p.code, {corner[0], corner[1], corner[2], corner[3]}, given,
                       {offset[0], offset[1], offset[2], offset[3]});
}

// How many of `count` falling ranks are of that level or above.
CREMA_FORMULA int32_t CountFrom(const uint64_t* ranks, int32_t count, uint32_t level) {
  int32_t begin = 0;
  while (begin < count) {
    const int32_t middle = (begin + count) / 2;
    if (LevelOf(ranks[middle]) >= level) {
      begin = middle + 1;
    } else {
      count = middle;
    }
  }
  return begin;
}

// The object that is number i of a list.
CREMA_FORMULA void WriteObject(const DetectionProblem& p, const DetectionInputs& inputs, const Lists& lists,
                               int64_t list, int64_t i, float* object) {
  const int64_t image = list / p.classes, category = list % p.classes, prior = PriorOf(lists.RanksOf(list)[i]);
  const BoundingBox box = lists.BoxesOf(list)[i];
  object[0] = static_cast<float>(image);
  object[1] = static_cast<float>(category);
  object[2] = inputs.scores[(image * p.priors + prior) * p.classes + category];
  object[3] = box.xmin;
  object[4] = box.ymin;
  object[5] = box.xmax;
  object[6] = box.ymax;
}

}  // namespace crema::detection

#endif  // CREMA_OPS_DETECTION_OUTPUT_FORMULAS_H_
