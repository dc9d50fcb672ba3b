#include "cuda/elementwise.h"
#include "cuda/lanes.h"
#include "cuda/operations.h"
#include "cuda/reduce.h"
#include "ops/detection_output_formulas.h"

namespace crema::cuda {

namespace {

using detection::Lists;

// Ranks are sorted in as many places as a power of two.
detection::ListScratch ScratchOf(const DetectionProblem& p) {
  int64_t ranks = 2;
  while (ranks < p.top_k) ranks *= 2;
  return {ranks, p.top_k};
}

constexpr unsigned kManyThreads = 1024;

// Of a block that fills lists: where candidates are many, few blocks have all the threads that there can be at a time.
unsigned ThreadsFor(const DetectionProblem& p) { return p.top_k > kManyThreads ? kManyThreads : kThreads; }

// One for each block.
int64_t AtOnce(const Queue& queue, const DetectionProblem& p) {
  return detection::ListsAtOnce(p, ScratchOf(p), int64_t{queue.multiprocessors} * 2048 / ThreadsFor(p));
}

constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;

// The scores of a class of an image, as ranks; 0 where there is no candidate.
struct Candidates {
  const float* scores;
  int64_t priors, stride;
  float above;

  __device__ uint64_t Rank(int64_t prior) const {
    const float score = scores[prior * stride];
    return score > above ? detection::RankOf(score, prior) : 0;
  }
};

// The lowest rank among the `wanted` highest, of which there are more, or one between it and the next: found digit by
// digit from the highest. All threads of the block must call, and get the same.
__device__ uint64_t FindCut(const Candidates& candidates, int wanted) {
  __shared__ int counts[kDigits];
  __shared__ int digit, above;
  uint64_t cut = 0;
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (int i = threadIdx.x; i < kDigits; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (int64_t prior = threadIdx.x; prior < candidates.priors; prior += blockDim.x) {
      const uint64_t rank = candidates.Rank(prior);
      const bool same = shift + kDigitBits == 64 || (rank ^ cut) >> (shift + kDigitBits) == 0;
      // Whole numbers are the same in any order.
      if (rank != 0 && same) atomicAdd(&counts[rank >> shift & (kDigits - 1)], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      digit = kDigits - 1;
      above = 0;
      while (above + counts[digit] < wanted) above += counts[digit--];
    }
    __syncthreads();
    wanted -= above;
    cut |= static_cast<uint64_t>(digit) << shift;
    const bool whole = counts[digit] == wanted;
    __syncthreads();  // before the counts are cleared
    if (whole) break;
  }
  return cut;
}

// Bitonic sort, falling, by the whole block; `count` is a power of two.
__device__ void SortRanks(uint64_t* ranks, int count) {
  for (int run = 2; run <= count; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const int low = i / distance * distance * 2 + i % distance, high = low + distance;
        const bool falls = (low & run) == 0;
        const uint64_t a = ranks[low], b = ranks[high];
        if ((a < b) == falls) {
          ranks[low] = b;
          ranks[high] = a;
        }
      }
      __syncthreads();
    }
  }
}

__device__ BoundingBox LoadBox(const BoundingBox* from) {
  const Lanes<4, float> corners = LoadLanes<4>(&from->xmin, 0);
  return {corners.values[0], corners.values[1], corners.values[2], corners.values[3]};
}

// By the whole block: candidates by falling rank, then what is left of them.
__device__ void FillList(const DetectionProblem& p, const DetectionInputs& inputs, const Lists& lists, int64_t list) {
  __shared__ int found;
  const int64_t image = list / p.classes, category = list % p.classes;
  if (category == p.background) {
    if (threadIdx.x == 0) lists.counts[list] = 0;
    return;
  }
  const Candidates candidates = {inputs.scores + image * p.priors * p.classes + category, p.priors, p.classes,
                                 p.score_above};
  int count = 0;
  for (int64_t prior = threadIdx.x; prior < p.priors; prior += blockDim.x) count += candidates.Rank(prior) != 0 ? 1 : 0;
  count = SumBlock(count);
  uint64_t cut = 1;
  if (count > p.top_k) {
    count = static_cast<int>(p.top_k);
    cut = FindCut(candidates, count);
  }

  uint64_t* const ranks = lists.candidates + blockIdx.x * lists.scratch.ranks;
  int sorted = 1;
  while (sorted < count) sorted *= 2;
  for (int i = count + static_cast<int>(threadIdx.x); i < sorted; i += blockDim.x) ranks[i] = 0;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (int64_t prior = threadIdx.x; prior < p.priors; prior += blockDim.x) {
    const uint64_t rank = candidates.Rank(prior);
    if (rank >= cut) ranks[atomicAdd(&found, 1)] = rank;  // in any order: they are sorted
  }
  __syncthreads();
  SortRanks(ranks, sorted);

  BoundingBox* const boxes = lists.candidate_boxes + blockIdx.x * lists.scratch.boxes;
  float* const overlaps = lists.candidate_overlaps + blockIdx.x * lists.scratch.boxes;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    boxes[i] = detection::BoxOf(p, inputs, image, category, detection::PriorOf(ranks[i]));
    overlaps[i] = 0;
  }
  __syncthreads();
  int kept = 0;
  float limit = p.most_overlap;
  for (int i = 0; i < count && kept < lists.room; ++i) {
    if (overlaps[i] > limit) continue;
    const BoundingBox box = LoadBox(boxes + i);
    for (int j = i + 1 + static_cast<int>(threadIdx.x); j < count; j += blockDim.x) {
      const float overlap = boxes::Overlap(LoadBox(boxes + j), box);
      if (!(overlap <= overlaps[j])) overlaps[j] = overlap == overlap ? overlap : 2.0f;  // a NaN covers, too
    }
    if (threadIdx.x == 0) {
      lists.BoxesOf(list)[kept] = box;
      lists.RanksOf(list)[kept] = ranks[i];
    }
    ++kept;
    if (limit > 0.5f) limit *= p.eta;
    __syncthreads();
  }
  if (threadIdx.x == 0) lists.counts[list] = kept;
}

// A block for each list, or for some.
template <unsigned kMostThreads>
__global__ void __launch_bounds__(kMostThreads) FillLists(DetectionProblem p, DetectionInputs inputs, Lists lists) {
  for (int64_t list = blockIdx.x; list < p.images * p.classes; list += gridDim.x) FillList(p, inputs, lists, list);
}

// How many in the lists of an image are of that level or above; all threads of the warp must call.
__device__ int CountFrom(const DetectionProblem& p, const Lists& lists, int64_t image, uint32_t level) {
  int count = 0;
  for (int64_t list = image * p.classes + threadIdx.x % 32; list < (image + 1) * p.classes; list += 32) {
    count += detection::CountFrom(lists.RanksOf(list), lists.counts[list], level);
  }
  return SumWarp(count);
}

// A block for each image: its best objects, behind those of the images before.
__global__ void __launch_bounds__(kThreads)
    WriteObjects(DetectionProblem p, DetectionInputs inputs, Lists lists, float* objects) {
  __shared__ uint32_t level;  // of the last one to be kept
  __shared__ int64_t equal;   // how many to keep of that level
  const int64_t image = blockIdx.x, first = image * p.classes;
  int64_t before = 0;
  for (int64_t other = threadIdx.x; other < image; other += blockDim.x) {
    int64_t count = 0;
    for (int64_t list = other * p.classes; list < (other + 1) * p.classes; ++list) count += lists.counts[list];
    before += count < p.keep ? count : p.keep;
  }
  before = SumBlock(before);

  if (threadIdx.x < 32) {
    uint32_t last = 0;
    int64_t of_last = INT64_MAX;
    if (CountFrom(p, lists, image, 0) > p.keep) {
      for (uint32_t bit = 0x80000000u; bit != 0; bit /= 2) {
        if (CountFrom(p, lists, image, last | bit) >= p.keep) last |= bit;
      }
      of_last = p.keep - CountFrom(p, lists, image, last + 1);
    }
    if (threadIdx.x == 0) {
      level = last;
      equal = of_last;
    }
  }
  __syncthreads();
  // What is above, and what is of the level.
  for (int64_t list = first + threadIdx.x; list < first + p.classes; list += blockDim.x) {
    const uint64_t* const ranks = lists.RanksOf(list);
    const int32_t above = detection::CountFrom(ranks, lists.counts[list], level + 1);
    lists.taken[list] = above;
    lists.first_row[list] = detection::CountFrom(ranks, lists.counts[list], level) - above;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t row = 0;
    int64_t left = equal;
    for (int64_t list = first; list < first + p.classes; ++list) {
      const int64_t of_level = lists.first_row[list] < left ? lists.first_row[list] : left;
      left -= of_level;
      lists.taken[list] += static_cast<int32_t>(of_level);
      lists.first_row[list] = row;
      row += lists.taken[list];
    }
  }
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (int64_t list = first + threadIdx.x / 32; list < first + p.classes; list += blockDim.x / 32) {
    float* const object = objects + (before + lists.first_row[list]) * kObjectNumbers;
    for (int32_t i = static_cast<int32_t>(lane); i < lists.taken[list]; i += 32) {
      detection::WriteObject(p, inputs, lists, list, i, object + i * kObjectNumbers);
    }
  }
}

struct SetNumber {
  float value;
  float* to;
  __device__ void operator()(int64_t i) const { to[i] = value; }
};

}  // namespace

size_t CudaOperations::DetectionWorkspace(const DetectionProblem& problem) {
  return detection::ListBytes(problem, ScratchOf(problem), AtOnce(queue(), problem));
}

void CudaOperations::DetectObjects(const DetectionProblem& p, const DetectionInputs& inputs, float* objects,
                                   std::byte* workspace) {
  ForEach(queue(), p.rows() * kObjectNumbers, SetNumber{-1, objects});
  if (p.images == 0) return;
  const int64_t at_once = AtOnce(queue(), p);
  const Lists lists = detection::ListsIn(p, ScratchOf(p), at_once, workspace);
  const unsigned threads = ThreadsFor(p);
  Launch(queue(), static_cast<unsigned>(at_once), threads,
         threads == kThreads ? FillLists<kThreads> : FillLists<kManyThreads>, p, inputs, lists);
  Launch(queue(), static_cast<unsigned>(p.images), kThreads, WriteObjects, p, inputs, lists, objects);
}

}  // namespace crema::cuda
