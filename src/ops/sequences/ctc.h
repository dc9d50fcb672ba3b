// Connectionist temporal classification: the probability of a sequence of labels that stand at unknown steps (Graves et
// al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent Neural Networks",
// 2006). f32 in CPU memory; threaded over sequences; nothing is allocated.
//
// A path goes through states: a blank, the first label, a blank, the second label ... a blank; at each step it stays,
// goes on by one state, or leaves out the blank between two different labels.
#ifndef CREMA_OPS_SEQUENCES_CTC_H_
#define CREMA_OPS_SEQUENCES_CTC_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

struct CtcProblem {
  int64_t steps = 1, batch = 1, classes = 1;  // scores: steps x batch x classes
  int64_t longest = 1;                        // labels: batch x longest, of which blanks and -1 are none
  int64_t blank = 0;
  bool takes_impossible = false;  // sequences with too few steps for their labels count as ones with loss 0

  CREMA_HOST_DEVICE int64_t states() const { return 2 * longest + 1; }
  CREMA_HOST_DEVICE int64_t rows() const { return steps * batch; }
};

// Of the scores of a sequence at one step. Apart, since their sum would lose the logarithm where all scores are far
// from 0.
struct CtcRow {
  float largest;
  float log_sum;  // the logarithm of the sum of exp(score - largest) over the classes
};

// What forward leaves for backward.
struct CtcTape {
  CtcRow* rows;      // steps x batch
  float* alphas;     // batch x steps x states: logarithms of probabilities, less a number of each step
  int32_t* classes;  // batch x states: that of each state
  int32_t* counts;   // batch: of the states that there are; 0 where no path has the labels
};

// The position of the first label that is neither a class nor -1, or that has too few steps for itself and those before
// it; -1 when there is none.
int64_t FindBadSequence(const CtcProblem& problem, const float* labels);

// Both in bytes.
size_t CtcForwardWorkspace(const CtcProblem& problem);
size_t CtcBackwardWorkspace(const CtcProblem& problem);
// *value = the mean over sequences of -log(probability of its labels). The softmax of the scores is part of it. Labels
// must be good.
void CtcLossForward(const CtcProblem& problem, const float* scores, const float* labels, const CtcTape& tape,
                    float* value, std::byte* workspace);
void CtcLossBackward(const CtcProblem& problem, const float* value_gradient, const float* scores, const CtcTape& tape,
                     float* dx, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_SEQUENCES_CTC_H_
