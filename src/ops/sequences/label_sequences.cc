#include "ops/sequences/label_sequences.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

CREMA_MULTIVERSION int64_t HighestClass(int64_t classes, const float* scores) {
  uint64_t best = 0;
#pragma omp simd reduction(max : best)
  for (int64_t c = 0; c < classes; ++c) {
    const uint64_t rank = label_sequences::RankOf(scores[c], c);
    best = rank > best ? rank : best;
  }
  return label_sequences::ClassOfRank(best);
}

void DecodeSequence(const SequenceScores& p, int64_t item, const float* scores, float* sequence) {
  int64_t before = p.blank, count = 0;
  for (int64_t step = 0; step < p.steps; ++step) {
    const int64_t label = HighestClass(p.classes, scores + p.Row(item, step) * p.classes);
    if (label != p.blank && label != before) sequence[count++] = static_cast<float>(label);
    before = label;
  }
  std::fill(sequence + count, sequence + p.steps, -1.0f);
}

}  // namespace

void DecodeSequences(const SequenceScores& problem, const float* scores, float* sequences) {
  ParallelFor(problem.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      DecodeSequence(problem, item, scores, sequences + item * problem.steps);
    }
  });
}

size_t SequenceComparisonWorkspace(const SequenceComparison& comparison) {
  return static_cast<size_t>(comparison.batch) *
         (sizeof(label_sequences::Match) + static_cast<size_t>(comparison.longest + 1) * sizeof(int32_t));
}

void CompareSequences(const SequenceComparison& comparison, const float* sequences, const float* labels, float* right,
                      float* labels_right, std::byte* workspace) {
  const SequenceComparison& c = comparison;
  auto* const matches = reinterpret_cast<label_sequences::Match*>(workspace);
  auto* const distances = reinterpret_cast<int32_t*>(matches + c.batch);
  ParallelFor(c.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      matches[item] = label_sequences::MatchOf(c, sequences + item * c.steps, labels + item * c.longest,
                                               distances + item * (c.longest + 1));
    }
  });
  int64_t same = 0, distance = 0, wanted = 0;
  for (int64_t item = 0; item < c.batch; ++item) {
    same += matches[item].distance == 0;
    distance += matches[item].distance;
    wanted += matches[item].labels;
  }
  *right = label_sequences::Share(same, c.batch);
  if (labels_right) *labels_right = 1 - label_sequences::Share(distance, wanted);
}

}  // namespace crema
