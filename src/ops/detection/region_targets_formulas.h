// What ops/detection/region_targets.h does with single objects, anchors and regions, shared by the CPU and kernels of a
// GPU.
#ifndef CREMA_OPS_DETECTION_REGION_TARGETS_FORMULAS_H_
#define CREMA_OPS_DETECTION_REGION_TARGETS_FORMULAS_H_

#include <cmath>

#include "ops/arrays/functors.h"
#include "ops/detection/region_targets.h"
#include "ops/sampling/roi_pooling.h"

namespace crema::region_targets {

// Pixels are told as exactly as that up to there.
inline constexpr float kFarthest = 8388608.0f;  // 2^23

CREMA_FORMULA bool IsNone(const float* object) { return object[0] == -1.0f && object[4] == -1.0f; }

// Whether number `which` of an object cannot be used.
CREMA_FORMULA bool IsBad(const RegionObjects& o, const float* object, int64_t which) {
  const float value = object[which];
  if (IsNone(object)) return false;
  if (which == 4) return !(value >= 1.0f && value < static_cast<float>(o.classes) && value == std::floor(value));
  return !(__builtin_fabsf(value) <= kFarthest) || (which >= 2 && value < object[which - 2]);
}

CREMA_FORMULA bool IsObject(const RegionObjects& o, const float* object) {
  if (IsNone(object)) return false;
  for (int64_t which = 0; which < kRegionObjectNumbers; ++which) {
    if (IsBad(o, object, which)) return false;
  }
  return true;
}

// The object of an image that a box overlaps most, the first of equals.
struct Match {
  float overlap = -1;   // 0 to 1
  int32_t object = -1;  // its row; -1: the image has none
};

// What an anchor or a region may be drawn as, the greater before.
enum class Kind : uint32_t { kNone, kOther, kBackground, kObject };

// Greater for what is drawn before, above 0 for all that may be drawn: its kind, a random number, and the lower index.
CREMA_FORMULA uint64_t RankOf(Kind kind, const RandomStream& random, uint64_t counter, int64_t index) {
  const uint64_t drawn = random.Bits(counter)[0] >> 1;
  return static_cast<uint64_t>(kind) << 62 | drawn << 31 | (0x7fffffffu - static_cast<uint32_t>(index));
}
CREMA_FORMULA Kind KindOf(uint64_t rank) { return static_cast<Kind>(rank >> 62); }
CREMA_FORMULA int64_t IndexOf(uint64_t rank) { return 0x7fffffff - static_cast<int64_t>(rank & 0x7fffffffu); }

CREMA_FORMULA int64_t Less(int64_t a, int64_t b) { return a < b ? a : b; }

// --- Anchors. ---

CREMA_FORMULA bool IsInside(const AnchorTargetProblem& p, const ScaledImage& image, const BoundingBox& anchor) {
  const float border = p.allowed_border;
  return anchor.xmin >= -border && anchor.ymin >= -border && anchor.xmax - 1.0f < image.width + border &&
         anchor.ymax - 1.0f < image.height + border;
}

// Of an anchor inside the image, before some are drawn. is_best: no other one overlaps some object more.
CREMA_FORMULA float LabelOf(const AnchorTargetProblem& p, const Match& match, bool is_best) {
  const bool is_object = match.object >= 0 && (is_best || match.overlap >= p.positive_overlap);
  const bool is_background = match.object < 0 || match.overlap < p.negative_overlap;
  if (is_object && is_background) return p.clobber_positives ? 0.0f : 1.0f;
  return is_object ? 1.0f : is_background ? 0.0f : -1.0f;
}

struct AnchorScratch {
  uint64_t* ranks;  // of each image as many as anchors
  int32_t* match;   // the same: rows of objects; -1 where there is none, or the anchor is not inside the image
  float* best;      // of each row of objects the largest overlap with any anchor inside the image
};
inline size_t AnchorScratchBytes(const AnchorTargetProblem& p) {
  const int64_t anchors = p.anchors.count() * static_cast<int64_t>(sizeof(uint64_t) + sizeof(int32_t));
  return static_cast<size_t>(p.objects.images * (anchors + p.objects.rows * static_cast<int64_t>(sizeof(float))));
}
inline AnchorScratch AnchorScratchIn(const AnchorTargetProblem& p, std::byte* workspace) {
  const int64_t count = p.objects.images * p.anchors.count();
  auto* const ranks = reinterpret_cast<uint64_t*>(workspace);
  auto* const match = reinterpret_cast<int32_t*>(ranks + count);
  return {ranks, match, reinterpret_cast<float*>(match + count)};
}

// What each anchor that counts is multiplied by, where so many of the image do.
CREMA_FORMULA float ShareOf(int64_t counted) { return counted > 0 ? 1.0f / static_cast<float>(counted) : 0.0f; }

// All but the label. objects: of the image; match: as in AnchorScratch.
CREMA_FORMULA void WriteAnchor(const AnchorTargetProblem& p, const float* objects, int64_t image, int64_t anchor,
                               int32_t match, float share, const AnchorTargets& targets) {
  constexpr BoxVariance kNone = {{1, 1, 1, 1}};
  BoundingBox offsets = {0, 0, 0, 0};
  if (match >= 0) {
    offsets = boxes::Encode(BoxCode::kCenterSize, anchors::BoxOf(p.anchors, anchor), kNone,
                            anchors::FromPixels(objects + match * kRegionObjectNumbers));
  }
  const float numbers[4] = {offsets.xmin, offsets.ymin, offsets.xmax, offsets.ymax};
  const float label = targets.labels[image * p.anchors.count() + anchor];
  int64_t at = image * 4 * p.anchors.count() + anchors::FirstNumber(p.anchors, anchor);
  for (int k = 0; k < 4; ++k, at += p.anchors.pixels()) {
    targets.offsets[at] = numbers[k];
    targets.inside_weights[at] = label == 1.0f ? 1.0f : 0.0f;
    targets.outside_weights[at] = label >= 0.0f ? share : 0.0f;
  }
}

// --- Regions. ---

// Proposals of an image, then its objects: what may be drawn.
CREMA_FORMULA int64_t Candidates(const RegionTargetProblem& p) { return p.proposals + p.objects.rows; }
// How many are drawn at most.
CREMA_FORMULA int64_t MostDrawn(const RegionTargetProblem& p) { return Less(p.batch, Candidates(p)); }

struct RegionInputs {
  const float *proposals, *objects;  // of all images

  // The corners of a candidate.
  CREMA_FORMULA const float* CornersOf(const RegionTargetProblem& p, int64_t image, int64_t candidate) const {
    if (candidate < p.proposals) return proposals + (image * p.proposals + candidate) * kRegionNumbers + 1;
    return ObjectAt(p, image, candidate - p.proposals);
  }
  CREMA_FORMULA const float* ObjectAt(const RegionTargetProblem& p, int64_t image, int64_t row) const {
    return objects + (image * p.objects.rows + row) * kRegionObjectNumbers;
  }

  CREMA_FORMULA bool IsCandidate(const RegionTargetProblem& p, int64_t image, int64_t candidate) const {
    const float* const corners = CornersOf(p, image, candidate);
    if (candidate >= p.proposals) return IsObject(p.objects, corners);
    const BoundingBox box = anchors::FromPixels(corners);
    return corners[-1] == static_cast<float>(image) && box.xmax > box.xmin && box.ymax > box.ymin;
  }
};

CREMA_FORMULA Match MatchOf(const RegionTargetProblem& p, const RegionInputs& in, int64_t image, int64_t candidate) {
  const BoundingBox own = anchors::FromPixels(in.CornersOf(p, image, candidate));
  Match match;
  for (int64_t row = 0; row < p.objects.rows; ++row) {
    const float* const object = in.ObjectAt(p, image, row);
    if (!IsObject(p.objects, object)) continue;
    const float overlap = boxes::Overlap(own, anchors::FromPixels(object));
    if (overlap > match.overlap) match = {overlap, static_cast<int32_t>(row)};
  }
  return match;
}

CREMA_FORMULA Kind KindOf(const RegionTargetProblem& p, const Match& match) {
  const float overlap = match.object < 0 ? 0.0f : match.overlap;
  if (match.object >= 0 && overlap >= p.foreground_overlap) return Kind::kObject;
  return overlap >= p.background_above && overlap < p.background_below ? Kind::kBackground : Kind::kOther;
}

// How many of an image are drawn: of the objects, and of the others, whose ranks come next.
struct Drawn {
  int64_t objects, others;
  CREMA_FORMULA int64_t count() const { return objects + others; }
};
// Where there is neither object nor background, any other candidate is background, lest an image have none.
CREMA_FORMULA Drawn DrawnOf(const RegionTargetProblem& p, int64_t objects, int64_t background, int64_t others) {
  const int64_t of_objects = Less(p.foreground, objects);
  const int64_t rest = of_objects + background > 0 ? background : others;
  return {of_objects, Less(p.batch - of_objects, rest)};
}

struct RegionScratch {
  uint64_t *ranks, *order;  // of each image: as many as candidates; those drawn, by falling rank, in MostDrawn places
  int32_t *match, *drawn;   // of each candidate the row of its object; of each image how many are drawn
};
inline size_t RegionScratchBytes(const RegionTargetProblem& p) {
  const int64_t ranks = (Candidates(p) + MostDrawn(p)) * static_cast<int64_t>(sizeof(uint64_t));
  const int64_t numbers = (Candidates(p) + 1) * static_cast<int64_t>(sizeof(int32_t));
  return static_cast<size_t>(p.objects.images * (ranks + numbers));
}
inline RegionScratch RegionScratchIn(const RegionTargetProblem& p, std::byte* workspace) {
  const int64_t images = p.objects.images, candidates = images * Candidates(p);
  auto* const ranks = reinterpret_cast<uint64_t*>(workspace);
  uint64_t* const order = ranks + candidates;
  auto* const match = reinterpret_cast<int32_t*>(order + images * MostDrawn(p));
  return {ranks, order, match, match + candidates};
}

// What row `row` of an image tells.
struct RegionTarget {
  float region[kRegionNumbers];
  int64_t label;        // class
  BoundingBox offsets;  // 0 where that is 0

  // Of those that have offsets.
  CREMA_FORMULA int64_t Class(const RegionTargetProblem& p) const { return Less(label, p.classes == 2 ? 1 : label); }
};
CREMA_FORMULA RegionTarget TargetOf(const RegionTargetProblem& p, const RegionInputs& in, const RegionScratch& scratch,
                                    int64_t image, int64_t row) {
  const int64_t drawn = scratch.drawn[image];
  if (drawn == 0 || (p.takes_all && row >= drawn))
    return {{kNoRegion, kNoRegion, kNoRegion, kNoRegion, kNoRegion}, 0, {0, 0, 0, 0}};
  const uint64_t rank = scratch.order[image * MostDrawn(p) + row % drawn];
  const float* const corners = in.CornersOf(p, image, IndexOf(rank));
  RegionTarget target = {{static_cast<float>(image), corners[0], corners[1], corners[2], corners[3]}, 0, {0, 0, 0, 0}};
  if (KindOf(rank) != Kind::kObject) return target;
  const float* const object = in.ObjectAt(p, image, scratch.match[image * Candidates(p) + IndexOf(rank)]);
  target.label = static_cast<int64_t>(object[4]);
  target.offsets =
      boxes::Encode(BoxCode::kCenterSize, anchors::FromPixels(corners), p.variance, anchors::FromPixels(object));
  return target;
}

}  // namespace crema::region_targets

#endif  // CREMA_OPS_DETECTION_REGION_TARGETS_FORMULAS_H_
