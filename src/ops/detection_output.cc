#include "ops/detection_output.h"

#include <algorithm>
#include <functional>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/detection_output_formulas.h"

namespace crema {

namespace {

using detection::Lists;

// Twice as many as are wanted: the better half is found when they are full.
detection::ListScratch ScratchOf(const DetectionProblem& p) {
  return {(std::min(p.priors, 2 * p.top_k) + 1) / 2 * 2, 0};
}

// Threads may be fewer.
int64_t AtOnce(const DetectionProblem& p) { return detection::ListsAtOnce(p, ScratchOf(p), 64); }

// Leaves the best top_k of `count` ranks in front, in no order, and returns how many there are.
int32_t KeepBest(const DetectionProblem& p, uint64_t* ranks, int32_t count) {
  if (count <= p.top_k) return count;
  std::nth_element(ranks, ranks + p.top_k - 1, ranks + count, std::greater<>());
  return static_cast<int32_t>(p.top_k);
}

// The candidates of a class, by falling rank.
int32_t FindCandidates(const DetectionProblem& p, int64_t slots, const float* scores, uint64_t* ranks) {
  int32_t count = 0;
  uint64_t above = 0;  // what a rank must be above to be among the best so far
  for (int64_t prior = 0; prior < p.priors; ++prior) {
    const float score = scores[prior * p.classes];
    if (!(score > p.score_above)) continue;
    const uint64_t rank = detection::RankOf(score, prior);
    if (rank <= above) continue;
    if (count == slots) {
      count = KeepBest(p, ranks, count);
      above = ranks[count - 1];
      if (rank <= above) continue;
    }
    ranks[count++] = rank;
  }
  count = KeepBest(p, ranks, count);
  std::sort(ranks, ranks + count, std::greater<>());
  return count;
}

// Whether one of the boxes overlaps this one by more than `limit`.
CREMA_MULTIVERSION bool IsCovered(const BoundingBox& box, const BoundingBox* by, int32_t count, float limit) {
  constexpr int32_t kTogether = 32;
  for (int32_t begin = 0; begin < count; begin += kTogether) {
    const int32_t end = std::min(count, begin + kTogether);
    int32_t covered = 0;
#pragma omp simd reduction(+ : covered)
    for (int32_t i = begin; i < end; ++i) covered += boxes::Overlap(box, by[i]) <= limit ? 0 : 1;
    if (covered > 0) return true;
  }
  return false;
}

// Fills a list: the candidates of a class of an image of which no better one covers them. `candidates`: scratch.
void FillList(const DetectionProblem& p, const DetectionInputs& inputs, const Lists& lists, int64_t list,
              uint64_t* candidates) {
  const int64_t image = list / p.classes, category = list % p.classes;
  uint64_t* const ranks = lists.RanksOf(list);
  BoundingBox* const boxes = lists.BoxesOf(list);
  int32_t kept = 0;
  if (category != p.background) {
    const float* scores = inputs.scores + image * p.priors * p.classes + category;
    const int32_t count = FindCandidates(p, lists.scratch.ranks, scores, candidates);
    float limit = p.most_overlap;
    for (int32_t i = 0; i < count && kept < lists.room; ++i) {
      const BoundingBox box = detection::BoxOf(p, inputs, image, category, detection::PriorOf(candidates[i]));
      if (IsCovered(box, boxes, kept, limit)) continue;
      boxes[kept] = box;
      ranks[kept++] = candidates[i];
      if (limit > 0.5f) limit *= p.eta;
    }
  }
  lists.counts[list] = kept;
}

// How many in the lists of an image are of that level or above.
int64_t CountFrom(const DetectionProblem& p, const Lists& lists, int64_t image, uint32_t level) {
  int64_t count = 0;
  for (int64_t list = image * p.classes; list < (image + 1) * p.classes; ++list) {
    count += detection::CountFrom(lists.RanksOf(list), lists.counts[list], level);
  }
  return count;
}

// Shortens the lists of an image to the `keep` best.
void Shorten(const DetectionProblem& p, const Lists& lists, int64_t image) {
  if (CountFrom(p, lists, image, 0) <= p.keep) return;
  uint32_t level = 0;  // of the last one to be kept
  for (uint32_t bit = 0x80000000u; bit != 0; bit /= 2) {
    if (CountFrom(p, lists, image, level | bit) >= p.keep) level |= bit;
  }
  int64_t equal = p.keep - CountFrom(p, lists, image, level + 1);  // to be kept of that level
  for (int64_t list = image * p.classes; list < (image + 1) * p.classes; ++list) {
    const uint64_t* const ranks = lists.RanksOf(list);
    const int32_t above = detection::CountFrom(ranks, lists.counts[list], level + 1);
    const int64_t of_level = std::min<int64_t>(detection::CountFrom(ranks, lists.counts[list], level) - above, equal);
    lists.counts[list] = above + static_cast<int32_t>(of_level);
    equal -= of_level;
  }
}

}  // namespace

size_t DetectionWorkspace(const DetectionProblem& problem) {
  return detection::ListBytes(problem, ScratchOf(problem), AtOnce(problem));
}

void DetectObjects(const DetectionProblem& p, const DetectionInputs& inputs, float* objects, std::byte* workspace) {
  const int64_t at_once = AtOnce(p), count = p.images * p.classes;
  const Lists lists = detection::ListsIn(p, ScratchOf(p), at_once, workspace);
  ParallelFor(at_once, 1, [&](int64_t begin, int64_t end) {
    uint64_t* const candidates = lists.candidates + begin * lists.scratch.ranks;
    for (int64_t list = count * begin / at_once; list < count * end / at_once; ++list) {
      FillList(p, inputs, lists, list, candidates);
    }
  });
  ParallelFor(p.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) Shorten(p, lists, image);
  });
  float* object = objects;
  for (int64_t list = 0; list < count; ++list) {
    for (int32_t i = 0; i < lists.counts[list]; ++i, object += kObjectNumbers) {
      detection::WriteObject(p, inputs, lists, list, i, object);
    }
  }
  std::fill(object, objects + p.rows() * kObjectNumbers, -1.0f);
}

}  // namespace crema
