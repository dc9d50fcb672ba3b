// What finding objects shares between the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_OUTPUT_FORMULAS_H_
#define CREMA_OPS_DETECTION_OUTPUT_FORMULAS_H_

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

// The scratch memory of images x classes lists.
struct Lists {
  int64_t slots;       // of a list, for ranks
  int64_t top_k;       // of a list, for boxes and overlaps
  uint64_t* ranks;     // of candidates, then of those that are kept, falling
  BoundingBox* boxes;  // of the same
  float* overlaps;     // GPU: the largest with what is kept
  int32_t* counts;     // by list: kept in it
  int32_t* taken;      // by list: kept in the image; GPU
  int32_t* first_row;  // by list, counted in the image; GPU

  CREMA_FORMULA uint64_t* RanksOf(int64_t list) const { return ranks + list * slots; }
  CREMA_FORMULA BoundingBox* BoxesOf(int64_t list) const { return boxes + list * top_k; }
};

inline size_t ListBytes(const DetectionProblem& p, int64_t slots) {
  const int64_t list = slots * static_cast<int64_t>(sizeof(uint64_t)) +
                       p.top_k * static_cast<int64_t>(sizeof(BoundingBox) + sizeof(float)) +
                       3 * static_cast<int64_t>(sizeof(int32_t));
  return static_cast<size_t>(p.images * p.classes * list);
}

// Arrays of larger elements come first, so that all are aligned; `slots` is even, so that boxes are to 16 bytes.
inline Lists ListsIn(const DetectionProblem& p, int64_t slots, std::byte* workspace) {
  const int64_t lists = p.images * p.classes;
  Lists made{};
  made.slots = slots;
  made.top_k = p.top_k;
  made.ranks = reinterpret_cast<uint64_t*>(workspace);
  made.boxes = reinterpret_cast<BoundingBox*>(made.ranks + lists * slots);
  made.overlaps = reinterpret_cast<float*>(made.boxes + lists * p.top_k);
  made.counts = reinterpret_cast<int32_t*>(made.overlaps + lists * p.top_k);
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
