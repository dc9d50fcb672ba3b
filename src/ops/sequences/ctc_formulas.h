// What ops/sequences/ctc.h does with one sequence and one state, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_SEQUENCES_CTC_FORMULAS_H_
#define CREMA_OPS_SEQUENCES_CTC_FORMULAS_H_

#include "ops/arrays/functors.h"
#include "ops/losses/label_formulas.h"
#include "ops/sequences/ctc.h"

namespace crema::ctc {

// The logarithm of the probability that no path is there, so low that no sum of others reaches it, and finite so that
// differences are numbers.
inline constexpr float kImpossible = -1e36f;
// That of a class is not below this, so that paths with classes of probability 0 are still told from no path.
inline constexpr float kLeastEmission = -1e30f;
CREMA_HOST_DEVICE inline LabelRule NoLabel() { return {true, -1}; }

CREMA_HOST_DEVICE inline bool IsLabel(const CtcProblem& p, float label) {
  return label != static_cast<float>(p.blank) && !labels::IsIgnored(NoLabel(), label) &&
         !labels::IsBad(NoLabel(), p.classes, label);
}

// The steps that the labels of a sequence up to position `end` take at least.
CREMA_HOST_DEVICE inline int64_t StepsFor(const CtcProblem& p, const float* sequence, int64_t end) {
  int64_t steps = 0;
  float before = -1;
  for (int64_t i = 0; i < end; ++i) {
    if (!IsLabel(p, sequence[i])) continue;
    steps += sequence[i] == before ? 2 : 1;
    before = sequence[i];
  }
  return steps;
}

// Of the label at a position, labels lying behind each other.
CREMA_HOST_DEVICE inline bool IsBad(const CtcProblem& p, const float* labels, int64_t position) {
  if (labels::IsBad(NoLabel(), p.classes, labels[position])) return true;
  if (p.takes_impossible || !IsLabel(p, labels[position])) return false;
  const int64_t place = position % p.longest;
  return StepsFor(p, labels + position - place, place + 1) > p.steps;
}

// The states of a sequence: writes the class of each and returns how many there are.
CREMA_HOST_DEVICE inline int32_t FindStates(const CtcProblem& p, const float* sequence, int32_t* classes) {
  const auto blank = static_cast<int32_t>(p.blank);
  int32_t count = 0;
  classes[count++] = blank;
  for (int64_t i = 0; i < p.longest; ++i) {
    if (!IsLabel(p, sequence[i])) continue;
    classes[count++] = static_cast<int32_t>(sequence[i]);
    classes[count++] = blank;
  }
  return StepsFor(p, sequence, p.longest) > p.steps ? 0 : count;
}

// What going from state - 2 to a state adds to the logarithm of a path's probability.
CREMA_HOST_DEVICE inline float Leap(const int32_t* classes, int64_t state) {
  return state >= 2 && state % 2 == 1 && classes[state] != classes[state - 2] ? 0.0f : kImpossible;
}

// log(exp(a) + exp(b) + exp(c)). A NaN stays one.
CREMA_FORMULA float LogOfSum(float a, float b, float c) {
  float most = b > a ? b : a;
  most = c > most ? c : most;
  return most + formula::Log(formula::Exp(a - most) + formula::Exp(b - most) + formula::Exp(c - most));
}

// The logarithm of a class's probability.
CREMA_FORMULA float LogProbability(float score, const CtcRow& row) { return (score - row.largest) - row.log_sum; }

// The same, where it is added to others.
CREMA_FORMULA float Emission(float score, const CtcRow& row) {
  const float logarithm = LogProbability(score, row);
  return logarithm < kLeastEmission ? kLeastEmission : logarithm;
}

}  // namespace crema::ctc

#endif  // CREMA_OPS_SEQUENCES_CTC_FORMULAS_H_
