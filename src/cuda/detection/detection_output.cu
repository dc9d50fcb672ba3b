#include "cuda/arrays/elementwise.h"
#include "cuda/arrays/reduce.h"
#include "cuda/detection/suppression.h"
#include "cuda/operations.h"
#include "ops/detection/detection_output_formulas.h"

namespace crema::cuda {

namespace {

using detection::Lists;

detection::ListScratch ScratchOf(const DetectionProblem& p) {
  return {SuppressionSlots(detection::SuppressionOf(p)), p.top_k};
}

constexpr unsigned kManyThreads = 1024;

// Of a block that fills lists: where candidates are many, few blocks have all the threads that there can be at a time.
unsigned ThreadsFor(const DetectionProblem& p) { return p.top_k > kManyThreads ? kManyThreads : kThreads; }

// One for each block.
int64_t AtOnce(const Queue& queue, const DetectionProblem& p) {
  return detection::ListsAtOnce(p, ScratchOf(p), int64_t{queue.multiprocessors} * 2048 / ThreadsFor(p));
}

// By the whole block: what is kept of the candidates.
__device__ void FillList(const DetectionProblem& p, const Suppression& s, const DetectionInputs& inputs,
                         const Lists& lists, int64_t list) {
  const int64_t image = list / p.classes, category = list % p.classes;
  int kept = 0;
  if (category != p.background) {
    const SuppressionScratch scratch = {lists.candidates + blockIdx.x * lists.scratch.ranks,
                                        lists.candidate_boxes + blockIdx.x * lists.scratch.boxes,
                                        lists.candidate_overlaps + blockIdx.x * lists.scratch.boxes};
    kept = SuppressByBlock(
        s, [&](int64_t prior) { return detection::RankOf(p, inputs, image, category, prior); },
        [&](int64_t prior) { return detection::BoxOf(p, inputs, image, category, prior); }, scratch,
        lists.RanksOf(list), lists.BoxesOf(list));
  }
  if (threadIdx.x == 0) lists.counts[list] = kept;
}

// A block for each list, or for some.
template <unsigned kMostThreads>
__global__ void __launch_bounds__(kMostThreads)
    FillLists(DetectionProblem p, Suppression s, DetectionInputs inputs, Lists lists) {
  for (int64_t list = blockIdx.x; list < p.images * p.classes; list += gridDim.x) FillList(p, s, inputs, lists, list);
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
         threads == kThreads ? FillLists<kThreads> : FillLists<kManyThreads>, p, detection::SuppressionOf(p), inputs,
         lists);
  Launch(queue(), static_cast<unsigned>(p.images), kThreads, WriteObjects, p, inputs, lists, objects);
}

}  // namespace crema::cuda
