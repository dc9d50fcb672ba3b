#include "ops/detection/region_targets.h"

#include <algorithm>
#include <functional>

#include "base/parallel.h"
#include "ops/detection/region_targets_formulas.h"

namespace crema {

namespace {

using region_targets::Drawn;
using region_targets::Kind;
using region_targets::Match;
using region_targets::RegionInputs;
using region_targets::RegionScratch;
using region_targets::RegionTarget;

void DrawRegions(const RegionTargetProblem& p, const RandomStream& random, const RegionInputs& inputs, int64_t image,
                 const RegionScratch& scratch) {
  const int64_t candidates = region_targets::Candidates(p);
  uint64_t* const ranks = scratch.ranks + image * candidates;
  uint64_t* end = ranks;
  int64_t counts[4] = {};  // of each kind
  for (int64_t i = 0; i < candidates; ++i) {
    if (!inputs.IsCandidate(p, image, i)) continue;
    const Match match = region_targets::MatchOf(p, inputs, image, i);
    const Kind kind = region_targets::KindOf(p, match);
    ++counts[static_cast<int>(kind)];
    scratch.match[image * candidates + i] = match.object;
    *end++ = region_targets::RankOf(kind, random, static_cast<uint64_t>(image * candidates + i), i);
  }
  const int64_t objects = counts[static_cast<int>(Kind::kObject)];
  const Drawn drawn = region_targets::DrawnOf(p, objects, counts[static_cast<int>(Kind::kBackground)],
                                              counts[static_cast<int>(Kind::kOther)]);
  uint64_t* const middle =
      std::partition(ranks, end, [](uint64_t rank) { return region_targets::KindOf(rank) == Kind::kObject; });
  std::partial_sort(ranks, ranks + drawn.objects, middle, std::greater<>());
  std::partial_sort(middle, middle + drawn.others, end, std::greater<>());
  uint64_t* const order = scratch.order + image * region_targets::MostDrawn(p);
  std::copy(middle, middle + drawn.others, std::copy(ranks, ranks + drawn.objects, order));
  scratch.drawn[image] = static_cast<int32_t>(drawn.count());
}

void WriteRow(const RegionTargetProblem& p, const RegionTarget& target, int64_t row, const RegionTargets& targets) {
  std::copy(target.region, target.region + kRegionNumbers, targets.regions + row * kRegionNumbers);
  targets.labels[row] = static_cast<float>(target.label);
  const int64_t numbers = 4 * p.classes, at = row * numbers;
  for (float* to : {targets.offsets, targets.inside_weights, targets.outside_weights}) {
    std::fill(to + at, to + at + numbers, 0.0f);
  }
  if (target.label == 0) return;
  const BoundingBox& offsets = target.offsets;
  const float of_class[4] = {offsets.xmin, offsets.ymin, offsets.xmax, offsets.ymax};
  const int64_t first = at + 4 * target.Class(p);
  std::copy(of_class, of_class + 4, targets.offsets + first);
  std::fill(targets.inside_weights + first, targets.inside_weights + first + 4, 1.0f);
  std::fill(targets.outside_weights + first, targets.outside_weights + first + 4, 1.0f);
}

}  // namespace

int64_t FindBadRegionObject(const RegionObjects& objects, const float* values) {
  constexpr int64_t kNumbers = kRegionObjectNumbers;
  for (int64_t i = 0; i < objects.images * objects.rows * kNumbers; ++i) {
    if (region_targets::IsBad(objects, values + i / kNumbers * kNumbers, i % kNumbers)) return i;
  }
  return -1;
}

size_t RegionTargetWorkspace(const RegionTargetProblem& problem) { return region_targets::RegionScratchBytes(problem); }

void MakeRegionTargets(const RegionTargetProblem& problem, const RandomStream& random, const float* proposals,
                       const float* objects, const RegionTargets& targets, std::byte* workspace) {
  const RegionInputs inputs = {proposals, objects};
  const RegionScratch scratch = region_targets::RegionScratchIn(problem, workspace);
  ParallelFor(problem.objects.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      DrawRegions(problem, random, inputs, image, scratch);
      for (int64_t row = 0; row < problem.batch; ++row) {
        const RegionTarget target = region_targets::TargetOf(problem, inputs, scratch, image, row);
        WriteRow(problem, target, image * problem.batch + row, targets);
      }
    }
  });
}

}  // namespace crema
