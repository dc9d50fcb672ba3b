// Sequences of labels that scores tell, and how many of them are right (see ops/sequences/ctc.h). f32 in CPU memory;
// threaded over sequences; nothing is allocated.
#ifndef CREMA_OPS_SEQUENCES_LABEL_SEQUENCES_H_
#define CREMA_OPS_SEQUENCES_LABEL_SEQUENCES_H_

#include <cstddef>
#include <cstdint>

#include "ops/arrays/arg_max.h"

namespace crema {

// Where the scores of a step are: those of its classes lie next to each other.
struct SequenceScores {
  int64_t steps = 1, batch = 1, classes = 1;
  int64_t blank = 0;
  bool batch_first = false;  // batch x steps x classes, else steps x batch x classes

  CREMA_HOST_DEVICE int64_t Row(int64_t item, int64_t step) const {
    return batch_first ? item * steps + step : step * batch + item;
  }
};

// sequences, batch x steps: of each step the class of the highest score, the first of equal ones, but neither blanks
// nor those that the step before had, too; -1 behind the last one.
void DecodeSequences(const SequenceScores& problem, const float* scores, float* sequences);

struct SequenceComparison {
  int64_t batch = 1, steps = 1;  // of the sequences that were told
  int64_t longest = 1;           // labels: batch x longest, of which blanks and -1 are none
  int64_t blank = 0;
};

size_t SequenceComparisonWorkspace(const SequenceComparison& comparison);  // in bytes
// *right: the share of sequences that are their labels. *labels_right, where it is not null: 1 - the sum of edit
// distances (Levenshtein) between sequences and labels, divided by the number of labels, 1 where there is none.
void CompareSequences(const SequenceComparison& comparison, const float* sequences, const float* labels, float* right,
                      float* labels_right, std::byte* workspace);

namespace label_sequences {

// Of the classes of a step the one of the highest score, the first of equal ones, has the greatest rank.
CREMA_FORMULA uint64_t RankOf(float score, int64_t index) {
  return formula::RankOf(score, ~static_cast<uint32_t>(index));
}
CREMA_FORMULA int64_t ClassOfRank(uint64_t rank) {
  return static_cast<int64_t>(~static_cast<uint32_t>(formula::IndexOfRank(rank)));
}

CREMA_HOST_DEVICE inline bool IsLabel(const SequenceComparison& c, float label) {
  return label >= 0 && label != static_cast<float>(c.blank);
}

// What comparing one sequence tells.
struct Match {
  int64_t distance = 0, labels = 0;
};

// distances: scratch of longest + 1 numbers.
CREMA_HOST_DEVICE inline Match MatchOf(const SequenceComparison& c, const float* sequence, const float* labels,
                                       int32_t* distances) {
  Match match;
  for (int64_t i = 0; i < c.longest; ++i) match.labels += IsLabel(c, labels[i]);
  for (int64_t i = 0; i <= match.labels; ++i) distances[i] = static_cast<int32_t>(i);
  for (int64_t step = 0; step < c.steps && sequence[step] >= 0; ++step) {
    int32_t diagonal = distances[0], *distance = distances;
    ++*distance;
    for (int64_t i = 0; i < c.longest; ++i) {
      if (!IsLabel(c, labels[i])) continue;
      int32_t least = diagonal + (sequence[step] == labels[i] ? 0 : 1);
      diagonal = distance[1];
      least = diagonal + 1 < least ? diagonal + 1 : least;
      least = distance[0] + 1 < least ? distance[0] + 1 : least;
      *++distance = least;
    }
  }
  match.distance = distances[match.labels];
  return match;
}

CREMA_HOST_DEVICE inline float Share(int64_t part, int64_t whole) {
  return static_cast<float>(static_cast<double>(part) / static_cast<double>(whole > 0 ? whole : 1));
}

}  // namespace label_sequences

}  // namespace crema

#endif  // CREMA_OPS_SEQUENCES_LABEL_SEQUENCES_H_
