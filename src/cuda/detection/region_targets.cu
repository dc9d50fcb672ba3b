#include <algorithm>

#include "cuda/arrays/lanes.h"
#include "cuda/detection/rank_cut.h"
#include "cuda/device/faults.h"
#include "cuda/operations.h"
#include "ops/detection/region_targets_formulas.h"

namespace crema::cuda {

namespace {

using region_targets::Drawn;
using region_targets::Kind;
using region_targets::Match;
using region_targets::RegionInputs;
using region_targets::RegionScratch;
using region_targets::RegionTarget;

constexpr unsigned kImageThreads = 1024;  // at most, of the block that has an image

struct IsBadNumber {
  RegionObjects objects;
  const float* values;
  __device__ bool operator()(float, int64_t position) const {
    constexpr int64_t kNumbers = kRegionObjectNumbers;
    return region_targets::IsBad(objects, values + position / kNumbers * kNumbers, position % kNumbers);
  }
};

// What the rank of one of the `wanted` highest is at least, of those above 0.
__device__ uint64_t LeastRank(const uint64_t* ranks, int64_t count, int64_t above_0, int64_t wanted) {
  if (wanted == above_0) return 1;
  return FindCut(
      count, [ranks](int64_t i) { return ranks[i]; }, static_cast<int>(wanted));
}

// A block for each image.
__global__ void __launch_bounds__(kImageThreads)
    DrawRegions(RegionTargetProblem p, uint64_t seed, uint32_t drawer, const PassState* state, RegionInputs inputs,
                RegionScratch scratch) {
  const int64_t image = blockIdx.x, candidates = region_targets::Candidates(p), first = image * candidates;
  const RandomStream random(seed, StreamId(drawer, state->pass));
  uint64_t* const ranks = scratch.ranks + first;
  int64_t objects = 0, background = 0, others = 0;
  for (int64_t i = threadIdx.x; i < candidates; i += blockDim.x) {
    ranks[i] = 0;
    if (!inputs.IsCandidate(p, image, i)) continue;
    const Match match = region_targets::MatchOf(p, inputs, image, i);
    const Kind kind = region_targets::KindOf(p, match);
    objects += kind == Kind::kObject;
    background += kind == Kind::kBackground;
    others += kind == Kind::kOther;
    scratch.match[first + i] = match.object;
    ranks[i] = region_targets::RankOf(kind, random, static_cast<uint64_t>(first + i), i);
  }
  objects = SumBlock(objects);  // which waits for what the threads wrote, too
  background = SumBlock(background);
  others = SumBlock(others);
  const Drawn drawn = region_targets::DrawnOf(p, objects, background, others);
  const int64_t all = objects + background + others;
  uint64_t least_object = ~uint64_t{0}, least_other = ~uint64_t{0};
  if (drawn.objects > 0) least_object = LeastRank(ranks, candidates, all, drawn.objects);
  if (drawn.others > 0) least_other = LeastRank(ranks, candidates, all, objects + drawn.others);
  uint64_t* const order = scratch.order + image * region_targets::MostDrawn(p);
  for (int64_t i = threadIdx.x; i < candidates; i += blockDim.x) {
    const uint64_t rank = ranks[i];
    const bool is_object = region_targets::KindOf(rank) == Kind::kObject;
    if (rank == 0 || rank < (is_object ? least_object : least_other)) continue;
    int64_t place = 0;
    for (int64_t other = 0; other < candidates; ++other) place += ranks[other] > rank;
    order[is_object ? place : place - objects + drawn.objects] = rank;
  }
  if (threadIdx.x == 0) scratch.drawn[image] = static_cast<int32_t>(drawn.count());
}

// One number of offsets, and the row's other ones with the first.
struct WriteNumber {
  RegionTargetProblem p;
  RegionInputs inputs;
  RegionScratch scratch;
  RegionTargets targets;

  __device__ void operator()(int64_t i) const {
    int64_t image = i;
    const int64_t number = SplitOff(&image, 4 * p.classes), row = SplitOff(&image, p.batch);
    const RegionTarget target = region_targets::TargetOf(p, inputs, scratch, image, row);
    const bool of_class = target.label > 0 && number / 4 == target.Class(p);
    const BoundingBox& offsets = target.offsets;
    const float numbers[4] = {offsets.xmin, offsets.ymin, offsets.xmax, offsets.ymax};
    targets.offsets[i] = of_class ? numbers[number % 4] : 0.0f;
    targets.inside_weights[i] = of_class ? 1.0f : 0.0f;
    targets.outside_weights[i] = of_class ? 1.0f : 0.0f;
    if (number > 0) return;
    const int64_t of_all = image * p.batch + row;
    targets.labels[of_all] = static_cast<float>(target.label);
    for (int k = 0; k < kRegionNumbers; ++k) targets.regions[of_all * kRegionNumbers + k] = target.region[k];
  }
};

}  // namespace

int64_t CudaOperations::FindBadRegionObject(const RegionObjects& objects, const float* values) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), objects.images * objects.rows * kRegionObjectNumbers, values,
              IsBadNumber{objects, values});
  return -1;
}

size_t CudaOperations::RegionTargetWorkspace(const RegionTargetProblem& problem) {
  return region_targets::RegionScratchBytes(problem);
}

void CudaOperations::MakeRegionTargets(const RegionTargetProblem& problem, const RandomStream& random,
                                       const float* proposals, const float* objects, const RegionTargets& targets,
                                       std::byte* workspace) {
  const int64_t images = problem.objects.images;
  if (images == 0) return;
  const RegionInputs inputs = {proposals, objects};
  const RegionScratch scratch = region_targets::RegionScratchIn(problem, workspace);
  const int64_t whole_warps = (region_targets::Candidates(problem) + 31) / 32 * 32;
  Launch(queue(), static_cast<unsigned>(images),
         static_cast<unsigned>(std::clamp<int64_t>(whole_warps, 32, kImageThreads)), DrawRegions, problem,
         random.seed(), static_cast<uint32_t>(random.stream() >> 40), gpu_.state(), inputs, scratch);
  ForEach(queue(), images * problem.batch * 4 * problem.classes, WriteNumber{problem, inputs, scratch, targets});
}

}  // namespace crema::cuda
