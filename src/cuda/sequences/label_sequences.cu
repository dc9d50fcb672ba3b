#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "ops/sequences/label_sequences.h"

namespace crema::cuda {

namespace {

// The class of the highest score of each step; a warp has a row.
__global__ void __launch_bounds__(kThreads) FindClasses(SequenceScores p, const float* scores, float* sequences) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t stride = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; i < p.batch * p.steps; i += stride) {
    const float* const of_step = scores + p.Row(i / p.steps, i % p.steps) * p.classes;
    uint64_t best = 0;
    for (int64_t c = lane; c < p.classes; c += 32) best = Larger()(label_sequences::RankOf(of_step[c], c), best);
    best = ReduceWarp(best, Larger());
    if (lane == 0) sequences[i] = static_cast<float>(label_sequences::ClassOfRank(best));
  }
}

// Takes repeated classes and blanks out of a sequence, in place.
struct KeepLabels {
  SequenceScores p;
  float* sequences;
  __device__ void operator()(int64_t item) const {
    float* const sequence = sequences + item * p.steps;
    const auto blank = static_cast<float>(p.blank);
    float before = blank;
    int64_t count = 0;
    for (int64_t step = 0; step < p.steps; ++step) {
      const float label = sequence[step];
      if (label != blank && label != before) sequence[count++] = label;
      before = label;
    }
    while (count < p.steps) sequence[count++] = -1;
  }
};

// One block, so that sums need no second kernel.
__global__ void __launch_bounds__(kThreads) Compare(SequenceComparison c, const float* sequences, const float* labels,
                                                    float* right, float* labels_right, int32_t* distances) {
  int64_t same = 0, distance = 0, wanted = 0;
  for (int64_t item = threadIdx.x; item < c.batch; item += kThreads) {
    const auto match = label_sequences::MatchOf(c, sequences + item * c.steps, labels + item * c.longest,
                                                distances + item * (c.longest + 1));
    same += match.distance == 0;
    distance += match.distance;
    wanted += match.labels;
  }
  same = SumBlock(same);
  distance = SumBlock(distance);
  wanted = SumBlock(wanted);
  if (threadIdx.x > 0) return;
  *right = label_sequences::Share(same, c.batch);
  if (labels_right) *labels_right = 1 - label_sequences::Share(distance, wanted);
}

}  // namespace

void CudaOperations::DecodeSequences(const SequenceScores& problem, const float* scores, float* sequences) {
  Launch(queue(), BlocksFor(queue(), problem.batch * problem.steps, kThreads / 32), kThreads, FindClasses, problem,
         scores, sequences);
  ForEach(queue(), problem.batch, KeepLabels{problem, sequences});
}

size_t CudaOperations::SequenceComparisonWorkspace(const SequenceComparison& comparison) {
  return static_cast<size_t>(comparison.batch * (comparison.longest + 1)) * sizeof(int32_t);
}

void CudaOperations::CompareSequences(const SequenceComparison& comparison, const float* sequences, const float* labels,
                                      float* right, float* labels_right, std::byte* workspace) {
  Launch(queue(), 1, kThreads, Compare, comparison, sequences, labels, right, labels_right,
         reinterpret_cast<int32_t*>(workspace));
}

}  // namespace crema::cuda
