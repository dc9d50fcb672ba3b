#include "ops/detection/detection_output.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/detection/detection_output_formulas.h"

namespace crema {

namespace {

using detection::Lists;

detection::ListScratch ScratchOf(const DetectionProblem& p) {
  return {suppression::Slots(detection::SuppressionOf(p)), 0};
}

// Threads may be fewer.
int64_t AtOnce(const DetectionProblem& p) { return detection::ListsAtOnce(p, ScratchOf(p), 64); }

// Fills a list: the candidates of a class of an image of which no better one covers them. `candidates`: scratch.
void FillList(const DetectionProblem& p, const DetectionInputs& inputs, const Lists& lists, int64_t list,
              uint64_t* candidates) {
  const int64_t image = list / p.classes, category = list % p.classes;
  lists.counts[list] = category == p.background
                           ? 0
                           : suppression::Suppress(
                                 detection::SuppressionOf(p),
                                 [&](int64_t prior) { return detection::RankOf(p, inputs, image, category, prior); },
                                 [&](int64_t prior) { return detection::BoxOf(p, inputs, image, category, prior); },
                                 candidates, lists.RanksOf(list), lists.BoxesOf(list));
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
