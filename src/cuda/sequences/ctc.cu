// A block has a sequence: its threads the states of a step, steps following each other.
#include <algorithm>
#include <cfloat>

#include "cuda/arrays/reduce.h"
#include "cuda/device/faults.h"
#include "cuda/losses/losses.h"
#include "cuda/operations.h"
#include "ops/sequences/ctc_formulas.h"

namespace crema::cuda {

namespace {

using ctc::kImpossible;
using ctc::LogOfSum;

constexpr size_t kPartBytes = kSumBlocks * sizeof(double);

struct IsBadSequence {
  CtcProblem problem;
  const float* labels;
  __device__ bool operator()(float, int64_t position) const { return ctc::IsBad(problem, labels, position); }
};

// A warp has a row.
__global__ void __launch_bounds__(kThreads) FindRows(CtcProblem p, const float* scores, CtcRow* rows) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t row = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; row < p.rows(); row += step) {
    const float* const of_row = scores + row * p.classes;
    float largest = -FLT_MAX;
    for (int64_t c = lane; c < p.classes; c += 32) largest = Larger()(largest, of_row[c]);
    largest = ReduceWarp(largest, Larger());
    float sum = 0;
    for (int64_t c = lane; c < p.classes; c += 32) sum += formula::Exp(of_row[c] - largest);
    sum = SumWarp(sum);
    if (lane == 0) rows[row] = {largest, formula::Log(sum)};
  }
}

// The sequence that a block has.
struct Sequence {
  const float* scores;
  const CtcRow* rows;
  float* alphas;
  int32_t* classes;
  int64_t stride, row_stride, states;

  __device__ Sequence(const CtcProblem& p, const float* scores, const CtcTape& tape)
      : scores(scores + blockIdx.x * p.classes),
        rows(tape.rows + blockIdx.x),
        alphas(tape.alphas + blockIdx.x * p.steps * p.states()),
        classes(tape.classes + blockIdx.x * p.states()),
        stride(p.batch * p.classes),
        row_stride(p.batch),
        states(p.states()) {}

  __device__ float Emission(int64_t step, int64_t state) const {
    return ctc::Emission(scores[step * stride + classes[state]], rows[step * row_stride]);
  }
};

__device__ float LargestOfBlock(float value) { return ReduceBlock(value, -FLT_MAX, Larger()); }

__global__ void FindAlphas(CtcProblem p, const float* scores, const float* labels, CtcTape tape, double* losses) {
  const Sequence s(p, scores, tape);
  if (threadIdx.x == 0) {
    tape.counts[blockIdx.x] = ctc::FindStates(p, labels + blockIdx.x * p.longest, s.classes);
    losses[blockIdx.x] = 0;
  }
  __syncthreads();
  const int64_t count = tape.counts[blockIdx.x];
  if (count == 0) return;
  float* alphas = s.alphas;
  double shifted = 0;
  for (int64_t step = 0; step < p.steps; ++step, alphas += s.states) {
    const float* const before = alphas - s.states;
    float shift = -FLT_MAX;
    if (step > 0) {
      for (int64_t i = threadIdx.x; i < count; i += blockDim.x) shift = Larger()(shift, before[i]);
      shift = LargestOfBlock(shift);
      shifted += shift;
    }
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      if (step == 0) {
        alphas[i] = i < 2 ? s.Emission(0, i) : kImpossible;
        continue;
      }
      const float of_previous = i > 0 ? before[i - 1] : kImpossible;
      const float of_leap = i > 1 ? before[i - 2] + ctc::Leap(s.classes, i) : kImpossible;
      alphas[i] = LogOfSum(before[i], of_previous, of_leap) + (s.Emission(step, i) - shift);
    }
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  alphas -= s.states;
  const float of_label = count > 1 ? alphas[count - 2] : kImpossible;
  losses[blockIdx.x] = -(shifted + LogOfSum(alphas[count - 1], of_label, kImpossible));
}

struct LossOfSequence {
  const double* losses;
  __device__ double operator()(int64_t i) const { return losses[i]; }
};

// Arrays of numbers for each state of a sequence.
struct BackwardScratch {
  float *betas, *ahead;
  int32_t* next;  // the next state of a label's class, 0 where there is none
  int32_t* is_first;

  __device__ BackwardScratch(const CtcProblem& p, float* workspace) {
    const int64_t states = p.states();
    betas = workspace + blockIdx.x * 4 * states;
    ahead = betas + states;
    next = reinterpret_cast<int32_t*>(ahead + states);
    is_first = next + states;
  }
};

// States of one class add to one number of the gradient: a thread walks over all of them, in their order.
__device__ void LinkStates(const Sequence& s, int64_t count, const BackwardScratch& scratch) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    int64_t next = i % 2 == 1 ? i + 2 : count, before = i - 2;
    while (next < count && s.classes[next] != s.classes[i]) next += 2;
    while (before > 0 && s.classes[before] != s.classes[i]) before -= 2;
    scratch.next[i] = next < count ? static_cast<int32_t>(next) : 0;
    scratch.is_first[i] = i % 2 == 1 && before < 0;
  }
}

// Betas of a step from those of the one behind it. All threads are done with what they read when it returns.
__device__ void StepBack(const Sequence& s, int64_t count, int64_t behind, const BackwardScratch& scratch) {
  float shift = -FLT_MAX;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) shift = Larger()(shift, scratch.betas[i]);
  shift = LargestOfBlock(shift);
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    scratch.ahead[i] = scratch.betas[i] + (s.Emission(behind, i) - shift);
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const float of_next = i + 1 < count ? scratch.ahead[i + 1] : kImpossible;
    const float of_leap = i + 2 < count ? scratch.ahead[i + 2] + ctc::Leap(s.classes, i + 2) : kImpossible;
    scratch.betas[i] = LogOfSum(scratch.ahead[i], of_next, of_leap);
  }
  __syncthreads();
}

// Which share of the paths is in which state, in scratch.ahead; returns that of all blanks.
__device__ float FindShares(const float* alphas, int64_t count, const BackwardScratch& scratch) {
  float largest = -FLT_MAX, sum = 0, blanks = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    scratch.ahead[i] = alphas[i] + scratch.betas[i];
    largest = Larger()(largest, scratch.ahead[i]);
  }
  largest = LargestOfBlock(largest);
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    scratch.ahead[i] = formula::Exp(scratch.ahead[i] - largest);
    sum += scratch.ahead[i];
    if (i % 2 == 0) blanks += scratch.ahead[i];
  }
  sum = SumBlock(sum);
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) scratch.ahead[i] /= sum;
  return SumBlock(blanks) / sum;
}

__global__ void FindGradients(CtcProblem p, const float* value_gradient, const float* scores, CtcTape tape, float* dx,
                              float* workspace) {
  const Sequence s(p, scores, tape);
  const BackwardScratch scratch(p, workspace);
  const int64_t count = tape.counts[blockIdx.x];
  const float scale = *value_gradient / static_cast<float>(p.batch);
  LinkStates(s, count, scratch);
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) scratch.betas[i] = i + 2 < count ? kImpossible : 0.0f;
  __syncthreads();
  for (int64_t step = p.steps - 1; step >= 0; --step) {
    float* const to = dx + blockIdx.x * p.classes + step * s.stride;
    if (count == 0) {
      for (int64_t c = threadIdx.x; c < p.classes; c += blockDim.x) to[c] = 0;
      continue;
    }
    if (step < p.steps - 1) StepBack(s, count, step + 1, scratch);
    const float blanks = FindShares(s.alphas + step * s.states, count, scratch);
    const CtcRow row = s.rows[step * s.row_stride];
    for (int64_t c = threadIdx.x; c < p.classes; c += blockDim.x) {
      const float probability = formula::Exp(ctc::LogProbability(s.scores[step * s.stride + c], row));
      to[c] = scale * (probability - (c == p.blank ? blanks : 0.0f));
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      if (!scratch.is_first[i]) continue;
      float share = 0;
      for (int64_t same = i; same > 0; same = scratch.next[same]) share += scratch.ahead[same];
      to[s.classes[i]] -= scale * share;
    }
    __syncthreads();
  }
}

unsigned ThreadsFor(int64_t count) {
  return static_cast<unsigned>(std::clamp<int64_t>((count + 31) / 32 * 32, 32, kThreads));
}

}  // namespace

int64_t CudaOperations::FindBadSequence(const CtcProblem& problem, const float* labels) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), problem.batch * problem.longest, labels,
              IsBadSequence{problem, labels});
  return -1;
}

size_t CudaOperations::CtcForwardWorkspace(const CtcProblem& problem) {
  return kPartBytes + static_cast<size_t>(problem.batch) * sizeof(double);
}

size_t CudaOperations::CtcBackwardWorkspace(const CtcProblem& problem) {
  return static_cast<size_t>(problem.batch * problem.states()) * 4 * sizeof(float);
}

void CudaOperations::CtcLossForward(const CtcProblem& problem, const float* scores, const float* labels,
                                    const CtcTape& tape, float* value, std::byte* workspace) {
  auto* const parts = reinterpret_cast<double*>(workspace);
  auto* const losses = reinterpret_cast<double*>(workspace + kPartBytes);
  Launch(queue(), BlocksFor(queue(), problem.rows(), kThreads / 32), kThreads, FindRows, problem, scores, tape.rows);
  Launch(queue(), static_cast<unsigned>(problem.batch), ThreadsFor(problem.states()), FindAlphas, problem, scores,
         labels, tape, losses);
  SumTerms(queue(), problem.batch, LossOfSequence{losses}, DivideBy{static_cast<double>(problem.batch), value}, parts);
}

void CudaOperations::CtcLossBackward(const CtcProblem& problem, const float* value_gradient, const float* scores,
                                     const CtcTape& tape, float* dx, std::byte* workspace) {
  Launch(queue(), static_cast<unsigned>(problem.batch), ThreadsFor(std::max(problem.states(), problem.classes)),
         FindGradients, problem, value_gradient, scores, tape, dx, reinterpret_cast<float*>(workspace));
}

}  // namespace crema::cuda
