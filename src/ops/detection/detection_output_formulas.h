// What finding objects shares between the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_DETECTION_OUTPUT_FORMULAS_H_
#define CREMA_OPS_DETECTION_DETECTION_OUTPUT_FORMULAS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/detection/anchors.h"
#include "ops/detection/detection_output.h"
#include "ops/detection/suppression.h"
#include "ops/sampling/roi_pooling.h"

namespace crema::detection {

// Of the candidates of a list.
inline Suppression SuppressionOf(const DetectionProblem& p) {
  return {p.priors, p.top_k, p.most_overlap, p.eta, std::min(p.top_k, p.keep)};
}

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

inline size_t ListBytes(const DetectionProblem& p, const ListScratch& scratch, int64_t at_once) {
  // Of a class the best `keep` alone can be among the best `keep` of an image.
  const int64_t list = SuppressionOf(p).room * static_cast<int64_t>(sizeof(uint64_t) + sizeof(BoundingBox)) +
                       3 * static_cast<int64_t>(sizeof(int32_t));
  return static_cast<size_t>(p.images * p.classes * list + at_once * scratch.bytes());
}

// Arrays of larger elements come first, so that all are aligned.
inline Lists ListsIn(const DetectionProblem& p, const ListScratch& scratch, int64_t at_once, std::byte* workspace) {
  const int64_t lists = p.images * p.classes;
  Lists made{};
  made.room = SuppressionOf(p).room;
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

// 0 where the prior is no candidate of the class.
CREMA_FORMULA uint64_t RankOf(const DetectionProblem& p, const DetectionInputs& inputs, int64_t image, int64_t category,
                              int64_t prior) {
  const int64_t at = image * p.priors + prior;
  const float score = inputs.scores[at * p.classes + category];
  if (!(score > p.score_above)) return 0;
  if (p.from_regions && inputs.priors[at * kRegionNumbers] != static_cast<float>(image)) return 0;
  return suppression::RankOf(score, prior);
}

// What a region becomes, in pixels of the original image, as a share of it.
CREMA_FORMULA BoundingBox BoxOfRegion(const DetectionProblem& p, const float* region, const float* offset,
                                      const ScaledImage& info) {
  const float scale = info.scale > 0.0f ? info.scale : 1.0f;
  const float corners[4] = {region[1] / scale, region[2] / scale, region[3] / scale, region[4] / scale};
  const ScaledImage original = {::roundf(info.height / scale), ::roundf(info.width / scale), 1.0f};
  const BoundingBox box = anchors::Inside(
      anchors::Moved(anchors::FromPixels(corners), p.variance, {offset[0], offset[1], offset[2], offset[3]}), original);
  return {box.xmin / original.width, box.ymin / original.height, box.xmax / original.width, box.ymax / original.height};
}

CREMA_FORMULA BoundingBox BoxOf(const DetectionProblem& p, const DetectionInputs& inputs, int64_t image,
                                int64_t category, int64_t prior) {
  const int64_t at = image * p.priors + prior, last = p.boxes - 1;
  const float* offset = inputs.offsets + (at * p.boxes + (category < last ? category : last)) * 4;
  if (p.from_regions) {
    return BoxOfRegion(p, inputs.priors + at * kRegionNumbers, offset, anchors::InfoOf(inputs.info, image));
  }
  if (p.as_corners) return {offset[0], offset[1], offset[2], offset[3]};
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
    if (suppression::LevelOf(ranks[middle]) >= level) {
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
  const int64_t image = list / p.classes, category = list % p.classes,
                prior = suppression::IndexOf(lists.RanksOf(list)[i]);
  const BoundingBox box = lists.BoxesOf(list)[i];
  object[0] = static_cast<float>(image);
  object[1] = inputs.labels ? inputs.labels[image * p.priors + prior] : static_cast<float>(category);
  object[2] = inputs.scores[(image * p.priors + prior) * p.classes + category];
  object[3] = box.xmin;
  object[4] = box.ymin;
  object[5] = box.xmax;
  object[6] = box.ymax;
}

}  // namespace crema::detection

#endif  // CREMA_OPS_DETECTION_DETECTION_OUTPUT_FORMULAS_H_
