#include <algorithm>
#include <limits>

#include "cuda/arrays/lanes.h"
#include "cuda/detection/rank_cut.h"
#include "cuda/losses/losses.h"
#include "cuda/operations.h"
#include "ops/detection/multibox_formulas.h"

namespace crema::cuda {

namespace {

constexpr int64_t kNumbers = ObjectRows::kNumbers;
constexpr unsigned kImageThreads = 1024;  // at most, of a block that has a whole image

// Of a block that looks through the priors of an image, `most` at most.
unsigned ThreadsFor(const MultiBoxProblem& p, unsigned most) {
  return static_cast<unsigned>(std::clamp<int64_t>((p.priors + 31) / 32 * 32, 32, most));
}

// A thread for each of some priors of an image. Threads look at a row each and keep those of the image, then all of
// them walk over these.
__global__ void __launch_bounds__(kThreads)
    FirstMatches(MultiBoxProblem p, const float* priors, const float* objects, int32_t* match, float* overlap) {
  __shared__ BoundingBox kept[kThreads];
  __shared__ uint32_t marks[kThreads / 32];
  int64_t image = blockIdx.x;
  const int64_t prior = SplitOff(&image, (p.priors + kThreads - 1) / kThreads) * kThreads + threadIdx.x;
  const bool inside = prior < p.priors;
  const BoundingBox own = inside ? multibox::BoxAt(priors, prior) : BoundingBox{0, 0, 0, 0};
  float largest = 0;
  int32_t with = 0;
  for (int64_t first = 0; first < p.objects; first += kThreads) {
    __syncthreads();  // before the marks are cleared
    if (threadIdx.x < kThreads / 32) marks[threadIdx.x] = 0;
    __syncthreads();
    const float* row = objects + (first + threadIdx.x) * kNumbers;
    if (first + threadIdx.x < p.objects && multibox::ImageOf(p, row) == image) {
      kept[threadIdx.x] = multibox::BoxOf(row);
      // Every bit is added once, which is the same as setting it.
      atomicAdd(&marks[threadIdx.x / 32], 1u << threadIdx.x % 32);
    }
    __syncthreads();
    for (int i = 0; i < static_cast<int>(kThreads); ++i) {
      if (marks[i / 32] == 0) {
        i |= 31;
        continue;
      }
      if ((marks[i / 32] >> i % 32 & 1u) == 0) continue;
      const float shared = boxes::Overlap(own, kept[i]);
      if (!(shared > multibox::kLeastOverlap && shared > largest)) continue;
      largest = shared;
      with = static_cast<int32_t>(first) + i;
    }
  }
  if (!inside) return;
  const bool left_out = p.whole_only && !multibox::IsWhole(own);
  match[image * p.priors + prior] = multibox::FirstMatch(p, left_out, largest, with);
  overlap[image * p.priors + prior] = left_out ? 0.0f : largest;
}

// The greatest rank of the free priors that an object overlaps, the same in all threads of the block, all of which must
// call; 0 where there is none.
__device__ uint64_t BestPrior(const MultiBoxProblem& p, const float* priors, const int32_t* match, const float* row) {
  const BoundingBox object = multibox::BoxOf(row);
  uint64_t best = 0;
  for (int64_t i = threadIdx.x; i < p.priors; i += blockDim.x) {
    const float shared = boxes::Overlap(multibox::BoxAt(priors, i), object);
    if (!multibox::IsFree(match[i]) || !(shared > multibox::kLeastOverlap)) continue;
    best = Larger()(best, suppression::RankOf(shared, i));
  }
  return ReduceBlock(best, uint64_t{0}, Larger());
}

// A block for each row.
__global__ void __launch_bounds__(kThreads)
    BestPriors(MultiBoxProblem p, const float* priors, const float* objects, const int32_t* match, uint64_t* best) {
  for (int64_t row = blockIdx.x; row < p.objects; row += gridDim.x) {
    const float* object = objects + row * kNumbers;
    const int64_t image = multibox::ImageOf(p, object);
    const uint64_t rank = image < 0 ? 0 : BestPrior(p, priors, match + image * p.priors, object);
    if (threadIdx.x == 0) best[row] = rank;
  }
}

// The pairs of an image, by falling overlap, as ops/detection/multibox.cc takes them. A block for each image.
__global__ void __launch_bounds__(kImageThreads)
    TakePriors(MultiBoxProblem p, const float* priors, const float* objects, uint64_t* best, int32_t* match) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const int64_t image = blockIdx.x;
  match += image * p.priors;
  while (true) {
    uint64_t greatest = 0;
    int64_t row = kNone;  // the first of the greatest of this thread
    for (int64_t r = threadIdx.x; r < p.objects; r += blockDim.x) {
      if (!(best[r] > greatest) || multibox::ImageOf(p, objects + r * kNumbers) != image) continue;
      greatest = best[r];
      row = r;
    }
    const uint64_t of_all = ReduceBlock(greatest, uint64_t{0}, Larger());
    if (of_all == 0) break;
    row = ReduceBlock(greatest == of_all ? row : kNone, kNone, Smaller());
    int32_t* const taken = match + suppression::IndexOf(of_all);
    const bool free = multibox::IsFree(*taken);
    const uint64_t rank = free ? 0 : BestPrior(p, priors, match, objects + row * kNumbers);
    __syncthreads();  // all have read what is written now
    if (threadIdx.x == 0) {
      if (free) *taken = static_cast<int32_t>(row);
      best[row] = rank;
    }
    __syncthreads();
  }
  for (int64_t i = threadIdx.x; i < p.priors; i += blockDim.x) {
    if (multibox::IsReserved(match[i])) match[i] = multibox::Reserved(match[i]);
  }
}

struct RankOfProbability {
  MultiBoxProblem p;
  const float *probability, *overlap;
  const int32_t* match;
  uint64_t* rank;

  __device__ void operator()(int64_t i) const {
    int64_t image = i;
    const int64_t prior = SplitOff(&image, p.priors);
    const bool may_be = multibox::MayBeNegative(p, match[i], overlap[i]);
    rank[i] =
        may_be ? suppression::RankOf(multibox::SoftmaxLossOf(probability[i * p.classes + p.background]), prior) : 0;
  }
};

// A warp for each place.
__global__ void __launch_bounds__(kThreads)
    RankOfScores(MultiBoxProblem p, const float* scores, const float* overlap, const int32_t* match, uint64_t* rank) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32), places = p.images * p.priors;
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; i < places; i += step) {
    float loss = 0;
    for (int64_t c = lane; c < p.classes; c += 32) loss += multibox::LogisticLoss(p, scores[i * p.classes + c], c);
    loss = SumWarp(loss);
    const bool may_be = multibox::MayBeNegative(p, match[i], overlap[i]);
    if (lane == 0) rank[i] = may_be ? suppression::RankOf(loss, i % p.priors) : 0;
  }
}

// By the whole block. Returns how many matches the image has.
__device__ int64_t LabelImage(const MultiBoxProblem& p, const MultiBoxMatches& matches, int64_t image, float* label) {
  const int64_t first = image * p.priors;
  const int32_t* match = matches.match + first;
  const uint64_t* rank = p.mines ? matches.rank + first : nullptr;
  int64_t counted = 0, candidates = 0;
  for (int64_t i = threadIdx.x; i < p.priors; i += blockDim.x) {
    counted += match[i] >= 0;
    candidates += rank && rank[i] > 0;
  }
  counted = SumBlock(counted);
  candidates = SumBlock(candidates);
  const int64_t negatives = multibox::Negatives(p, counted, candidates);
  uint64_t least = 0;
  if (p.mines && negatives > 0) {
    least = FindCut(
        p.priors, [rank](int64_t i) { return rank[i]; }, static_cast<int>(negatives));
  }
  for (int64_t i = threadIdx.x; i < p.priors; i += blockDim.x) {
    float value = multibox::LabelWithoutObject(p);
    if (match[i] >= 0) {
      value = multibox::LabelOf(p, matches.objects, match[i]);
    } else if (least > 0 && rank[i] >= least) {
      value = static_cast<float>(p.background);
    }
    label[first + i] = value;
  }
  return counted;
}

// A block for each image, or for some.
__global__ void __launch_bounds__(kImageThreads)
    LabelImages(MultiBoxProblem p, MultiBoxMatches matches, float* label, double* counts) {
  int64_t counted = 0;
  for (int64_t image = blockIdx.x; image < p.images; image += gridDim.x) {
    counted += LabelImage(p, matches, image, label);
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = static_cast<double>(counted);
}

struct CountOf {
  const double* counts;
  __device__ double operator()(int64_t block) const { return counts[block]; }
};
struct KeepShare {
  MultiBoxProblem problem;
  float* share;
  __device__ void operator()(double matches) const { *share = multibox::Share(problem, static_cast<int64_t>(matches)); }
};

struct WriteLocations {
  MultiBoxProblem problem;
  MultiBoxMatches matches;
  MultiBoxTargets targets;
  __device__ void operator()(int64_t i) const {
    int64_t image = i;
    multibox::WriteLocation(problem, matches, targets, i, SplitOff(&image, problem.priors));
  }
};

struct WriteClassTargets {
  int64_t classes;
  const float* label;
  float* target;
  __device__ void operator()(int64_t i) const {
    int64_t place = i;
    const int64_t c = SplitOff(&place, classes);
    target[i] = multibox::ClassTarget(label[place], c);
  }
};

}  // namespace

void CudaOperations::MatchPriors(const MultiBoxProblem& problem, const float* priors, const float* objects,
                                 uint64_t* best, int32_t* match, float* overlap) {
  if (problem.places() == 0) return;
  const int64_t tiles = (problem.priors + kThreads - 1) / kThreads;
  Launch(queue(), static_cast<unsigned>(tiles * problem.images), kThreads, FirstMatches, problem, priors, objects,
         match, overlap);
  if (problem.objects == 0) return;
  Launch(queue(), BlocksFor(queue(), problem.objects, 1), ThreadsFor(problem, kThreads), BestPriors, problem, priors,
         objects, match, best);
  Launch(queue(), static_cast<unsigned>(problem.images), ThreadsFor(problem, kImageThreads), TakePriors, problem,
         priors, objects, best, match);
}

void CudaOperations::RankNegatives(const MultiBoxProblem& problem, const float* scores, const int32_t* match,
                                   const float* overlap, uint64_t* rank) {
  if (problem.places() == 0) return;
  if (problem.logistic) {
    Launch(queue(), BlocksFor(queue(), problem.places(), kThreads / 32), kThreads, RankOfScores, problem, scores,
           overlap, match, rank);
  } else {
    ForEach(queue(), problem.places(), RankOfProbability{problem, scores, overlap, match, rank});
  }
}

void CudaOperations::MakeMultiBoxTargets(const MultiBoxProblem& problem, const MultiBoxMatches& matches,
                                         const MultiBoxTargets& targets) {
  const unsigned blocks = BlocksFor(queue(), problem.images, 1);
  auto* parts = Scratch<double>((static_cast<size_t>(kSumBlocks) + blocks) * sizeof(double));
  double* counts = parts + kSumBlocks;
  Launch(queue(), blocks, ThreadsFor(problem, kImageThreads), LabelImages, problem, matches, targets.label, counts);
  SumTerms(queue(), blocks, CountOf{counts}, KeepShare{problem, targets.share}, parts);
  if (targets.location) ForEach(queue(), problem.places(), WriteLocations{problem, matches, targets});
  if (targets.class_target) {
    ForEach(queue(), problem.places() * problem.classes,
            WriteClassTargets{problem.classes, targets.label, targets.class_target});
  }
}

}  // namespace crema::cuda
