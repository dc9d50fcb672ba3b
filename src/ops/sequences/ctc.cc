#include "ops/sequences/ctc.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/sequences/ctc_formulas.h"

namespace crema {

namespace {

using ctc::kImpossible;
using ctc::LogOfSum;

constexpr int kForwardArrays = 2, kBackwardArrays = 4;  // of as many floats as there are states, for each sequence

// One sequence, and arrays of numbers for each of its states.
struct Sequence {
  const float* scores;  // of its first step; those of the next lie `stride` further
  const CtcRow* rows;
  const float* alphas;
  const int32_t* classes;
  int64_t stride, row_stride, count;
  float *emissions, *leaps, *betas, *ahead;  // the last two for backward
};

Sequence SequenceOf(const CtcProblem& p, int64_t item, const float* scores, const CtcTape& tape, int arrays,
                    std::byte* workspace) {
  const int64_t states = p.states();
  float* const scratch = reinterpret_cast<float*>(workspace) + item * arrays * states;
  return {scores + item * p.classes,
          tape.rows + item,
          tape.alphas + item * p.steps * states,
          tape.classes + item * states,
          p.batch * p.classes,
          p.batch,
          tape.counts[item],
          scratch,
          scratch + states,
          scratch + 2 * states,
          scratch + 3 * states};
}

CREMA_MULTIVERSION CtcRow RowOf(int64_t n, const float* x) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += formula::Exp(x[i] - largest);
  return {largest, formula::Log(sum)};
}

CREMA_MULTIVERSION void FindEmissions(const Sequence& s, int64_t step) {
  const float* scores = s.scores + step * s.stride;
  const CtcRow row = s.rows[step * s.row_stride];
#pragma omp simd
  for (int64_t i = 0; i < s.count; ++i) s.emissions[i] = ctc::Emission(scores[s.classes[i]], row);
}

// Both return the largest of what they write. `shift`: what is taken off all of them, so that they stay near 0.
CREMA_MULTIVERSION float NextAlphas(const Sequence& s, float shift, const float* before, float* alphas) {
  float largest = alphas[0] = before[0] + (s.emissions[0] - shift);
  if (s.count == 1) return largest;
  alphas[1] = LogOfSum(before[1], before[0], kImpossible) + (s.emissions[1] - shift);
  largest = std::max(largest, alphas[1]);
#pragma omp simd reduction(max : largest)
  for (int64_t i = 2; i < s.count; ++i) {
    alphas[i] = LogOfSum(before[i], before[i - 1], before[i - 2] + s.leaps[i]) + (s.emissions[i] - shift);
    largest = alphas[i] > largest ? alphas[i] : largest;
  }
  return largest;
}

// From those of the step behind, which `betas` holds, with the emissions of that step.
CREMA_MULTIVERSION float BetasBefore(const Sequence& s, float shift) {
  const int64_t last = s.count - 1;
#pragma omp simd
  for (int64_t i = 0; i <= last; ++i) s.ahead[i] = s.betas[i] + (s.emissions[i] - shift);
  float largest = s.betas[last] = s.ahead[last];
  if (last == 0) return largest;
  s.betas[last - 1] = LogOfSum(s.ahead[last - 1], s.ahead[last], kImpossible);
  largest = std::max(largest, s.betas[last - 1]);
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < last - 1; ++i) {
    s.betas[i] = LogOfSum(s.ahead[i], s.ahead[i + 1], s.ahead[i + 2] + s.leaps[i + 2]);
    largest = s.betas[i] > largest ? s.betas[i] : largest;
  }
  return largest;
}

CREMA_MULTIVERSION void ScaledProbabilities(int64_t n, float scale, const float* scores, CtcRow row, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = scale * formula::Exp(ctc::LogProbability(scores[i], row));
}

// Which share of the paths is in which state at a step, in `ahead`.
CREMA_MULTIVERSION void FindShares(const Sequence& s, const float* alphas) {
  float largest = alphas[0] + s.betas[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < s.count; ++i) {
    s.ahead[i] = alphas[i] + s.betas[i];
    largest = s.ahead[i] > largest ? s.ahead[i] : largest;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < s.count; ++i) {
    s.ahead[i] = formula::Exp(s.ahead[i] - largest);
    sum += s.ahead[i];
  }
#pragma omp simd
  for (int64_t i = 0; i < s.count; ++i) s.ahead[i] /= sum;
}

// -log(probability), with the alphas of all steps.
double ForwardSequence(const CtcProblem& p, const Sequence& s, float* alphas) {
  for (int64_t i = 0; i < s.count; ++i) s.leaps[i] = ctc::Leap(s.classes, i);
  FindEmissions(s, 0);
  std::fill(alphas, alphas + s.count, kImpossible);
  std::copy(s.emissions, s.emissions + std::min<int64_t>(2, s.count), alphas);
  float shift = *std::max_element(alphas, alphas + s.count);
  double shifted = 0;
  for (int64_t step = 1; step < p.steps; ++step, alphas += p.states()) {
    FindEmissions(s, step);
    shifted += shift;
    shift = NextAlphas(s, shift, alphas, alphas + p.states());
  }
  const float of_label = s.count > 1 ? alphas[s.count - 2] : kImpossible;
  return -(shifted + LogOfSum(alphas[s.count - 1], of_label, kImpossible));
}

void BackwardSequence(const CtcProblem& p, const Sequence& s, float scale, float* dx) {
  for (int64_t i = 0; i < s.count; ++i) s.leaps[i] = ctc::Leap(s.classes, i);
  std::fill(s.betas, s.betas + s.count, kImpossible);
  std::fill(s.betas + std::max<int64_t>(0, s.count - 2), s.betas + s.count, 0.0f);
  float shift = 0;
  for (int64_t step = p.steps - 1; step >= 0; --step) {
    if (step < p.steps - 1) shift = BetasBefore(s, shift);
    FindEmissions(s, step);
    FindShares(s, s.alphas + step * p.states());
    float* const to = dx + step * s.stride;
    ScaledProbabilities(p.classes, scale, s.scores + step * s.stride, s.rows[step * s.row_stride], to);
    for (int64_t i = 0; i < s.count; ++i) to[s.classes[i]] -= scale * s.ahead[i];
  }
}

}  // namespace

int64_t FindBadSequence(const CtcProblem& problem, const float* labels) {
  for (int64_t i = 0; i < problem.batch * problem.longest; ++i) {
    if (ctc::IsBad(problem, labels, i)) return i;
  }
  return -1;
}

size_t CtcForwardWorkspace(const CtcProblem& problem) {
  const size_t scratch = static_cast<size_t>(problem.batch * problem.states()) * kForwardArrays * sizeof(float);
  return static_cast<size_t>(problem.batch) * sizeof(double) + scratch;
}

size_t CtcBackwardWorkspace(const CtcProblem& problem) {
  return static_cast<size_t>(problem.batch * problem.states()) * kBackwardArrays * sizeof(float);
}

void CtcLossForward(const CtcProblem& problem, const float* scores, const float* labels, const CtcTape& tape,
                    float* value, std::byte* workspace) {
  auto* const losses = reinterpret_cast<double*>(workspace);
  std::byte* const scratch = workspace + static_cast<size_t>(problem.batch) * sizeof(double);
  ParallelFor(problem.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      tape.counts[item] =
          ctc::FindStates(problem, labels + item * problem.longest, tape.classes + item * problem.states());
      for (int64_t row = item; row < problem.rows(); row += problem.batch) {
        tape.rows[row] = RowOf(problem.classes, scores + row * problem.classes);
      }
      const Sequence sequence = SequenceOf(problem, item, scores, tape, kForwardArrays, scratch);
      float* const alphas = tape.alphas + item * problem.steps * problem.states();
      losses[item] = sequence.count > 0 ? ForwardSequence(problem, sequence, alphas) : 0.0;
    }
  });
  double sum = 0;
  for (int64_t item = 0; item < problem.batch; ++item) sum += losses[item];
  *value = static_cast<float>(sum / static_cast<double>(problem.batch));
}

void CtcLossBackward(const CtcProblem& problem, const float* value_gradient, const float* scores, const CtcTape& tape,
                     float* dx, std::byte* workspace) {
  const float scale = *value_gradient / static_cast<float>(problem.batch);
  ParallelFor(problem.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const Sequence sequence = SequenceOf(problem, item, scores, tape, kBackwardArrays, workspace);
      float* const to = dx + item * problem.classes;
      if (sequence.count > 0) {
        BackwardSequence(problem, sequence, scale, to);
        continue;
      }
      for (int64_t step = 0; step < problem.steps; ++step) {
        std::fill(to + step * sequence.stride, to + step * sequence.stride + problem.classes, 0.0f);
      }
    }
  });
}

}  // namespace crema
