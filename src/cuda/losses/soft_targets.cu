#include "cuda/arrays/reduce.h"
#include "cuda/arrays/sums.h"
#include "cuda/device/faults.h"
#include "cuda/operations.h"
#include "ops/losses/soft_target_formulas.h"

namespace crema::cuda {

namespace {

struct TargetIsBad {
  __device__ bool operator()(float target) const { return soft_targets::IsBad(target); }
};

// kLanes threads have one position: 32 where its classes lie next to each other, 1 where those of positions do.
template <unsigned kLanes>
struct Position {
  const SoftmaxLoss& loss;
  int64_t first;  // offset of its class 0

  template <typename Number>
  __device__ Number Sum(Number of_thread) const {
    if constexpr (kLanes > 1) return SumWarp(of_thread);
    return of_thread;
  }
  // Calls body(class, offset) for the thread's classes.
  template <typename Body>
  __device__ void ForEachClass(const Body& body) const {
    for (int64_t c = threadIdx.x % kLanes; c < loss.axis.classes; c += kLanes) body(c, first + c * loss.axis.inner);
  }

  // All threads of the position must call these.
  __device__ float Weight(const float* target) const {
    float sum = 0;
    ForEachClass([&](int64_t c, int64_t at) { sum += soft_targets::Weighted(loss.class_weight, c, target[at]); });
    return Sum(sum);
  }
  __device__ double Term(float weight, const float* probability, const float* target) const {
    const soft_targets::Wanted wanted(loss, weight);
    double sum = 0;
    ForEachClass([&](int64_t c, int64_t at) {
      sum += soft_targets::Term(wanted(soft_targets::Weighted(loss.class_weight, c, target[at])), probability[at]);
    });
    return Sum(sum);
  }
};

// Calls body(i, position) for all positions.
template <unsigned kLanes, typename Body>
__device__ void ForEachPosition(const SoftmaxLoss& loss, const Body& body) {
  const int64_t positions = loss.axis.outer * loss.axis.inner, step = int64_t{gridDim.x} * (kThreads / kLanes);
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kLanes; i < positions; i += step) {
    body(i, Position<kLanes>{loss, labels::FirstOffset(loss.axis, i)});
  }
}

// What some positions add: parts of two sums, the weights behind all terms.
template <unsigned kLanes>
__global__ void __launch_bounds__(kThreads)
    SumKernel(SoftmaxLoss loss, const float* probability, const float* target, double* parts) {
  double terms = 0, weights = 0;
  ForEachPosition<kLanes>(loss, [&](int64_t i, const Position<kLanes>& position) {
    const float weight = position.Weight(target);
    const double term = probability ? position.Term(weight, probability, target) : 0;
    if (threadIdx.x % kLanes > 0) return;
    terms += Weighted(loss.weights[i], term);
    weights += weight;
  });
  terms = SumBlock(terms);
  weights = SumBlock(weights);
  if (threadIdx.x > 0) return;
  parts[blockIdx.x] = terms;
  parts[gridDim.x + blockIdx.x] = weights;
}

__device__ double SumOfParts(unsigned count, const double* parts) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
  return SumBlock(sum);
}

__global__ void __launch_bounds__(kThreads)
    FinishKernel(SoftmaxLoss loss, unsigned count, const double* parts, float* value) {
  const double terms = SumOfParts(count, parts), weights = SumOfParts(count, parts + count);
  if (threadIdx.x == 0) *value = static_cast<float>(terms / labels::Normalizer(loss, weights));
}

template <unsigned kLanes>
__global__ void __launch_bounds__(kThreads)
    TermKernel(SoftmaxLoss loss, const float* probability, const float* target, float* terms) {
  ForEachPosition<kLanes>(loss, [&](int64_t i, const Position<kLanes>& position) {
    const double term = position.Term(position.Weight(target), probability, target);
    if (threadIdx.x % kLanes == 0) terms[i] = static_cast<float>(Weighted(loss.weights[i], term));
  });
}

// `count`: of parts of the weights, where the sum is divided by them.
template <unsigned kLanes>
__global__ void __launch_bounds__(kThreads)
    GradientKernel(SoftmaxLoss loss, const float* value_gradient, unsigned count, const double* weights,
                   const float* probability, const float* target, float* dx) {
  const double divisor = labels::Normalizer(loss, count > 0 ? SumOfParts(count, weights) : 0.0);
  const auto of_all = static_cast<float>(*value_gradient / divisor);
  ForEachPosition<kLanes>(loss, [&](int64_t i, const Position<kLanes>& position) {
    const float weight = position.Weight(target), scale = of_all * loss.weights[i];
    const soft_targets::Wanted wanted(loss, weight);
    position.ForEachClass([&](int64_t c, int64_t at) {
      const float weighted = soft_targets::Weighted(loss.class_weight, c, target[at]);
      dx[at] = labels::Gradient(scale, weight * probability[at], wanted(weighted));
    });
  });
}

bool ByWarps(const SoftmaxLoss& loss) { return loss.axis.inner == 1; }

unsigned BlocksOf(const Queue& queue, const SoftmaxLoss& loss) {
  return BlocksFor(queue, loss.axis.positions() * (ByWarps(loss) ? 32 : 1));
}

}  // namespace

int64_t CudaOperations::FindBadTarget(int64_t count, const float* target) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), count, target, TargetIsBad());
  return -1;
}

void CudaOperations::SoftTargetLossForward(const SoftmaxLoss& loss, const float* probability, const float* target,
                                           float* value) {
  const unsigned blocks = std::min<unsigned>(BlocksOf(queue(), loss), kSumBlocks);
  auto* parts = Scratch<double>(2 * blocks * sizeof(double));
  Launch(queue(), blocks, kThreads, ByWarps(loss) ? SumKernel<32> : SumKernel<1>, loss, probability, target, parts);
  Launch(queue(), 1, kThreads, FinishKernel, loss, blocks, parts, value);
}

void CudaOperations::SoftTargetLossTerms(const SoftmaxLoss& loss, const float* probability, const float* target,
                                         float* terms) {
  if (loss.axis.positions() == 0) return;
  Launch(queue(), BlocksOf(queue(), loss), kThreads, ByWarps(loss) ? TermKernel<32> : TermKernel<1>, loss, probability,
         target, terms);
}

void CudaOperations::SoftTargetLossBackward(const SoftmaxLoss& loss, const float* value_gradient,
                                            const float* probability, const float* target, float* dx) {
  if (loss.axis.positions() == 0) return;
  unsigned count = 0;
  auto* parts = Scratch<double>(2 * kSumBlocks * sizeof(double));
  if (loss.normalizer <= 0) {
    count = std::min<unsigned>(BlocksOf(queue(), loss), kSumBlocks);
    const float* const none = nullptr;
    Launch(queue(), count, kThreads, ByWarps(loss) ? SumKernel<32> : SumKernel<1>, loss, none, target, parts);
  }
  Launch(queue(), BlocksOf(queue(), loss), kThreads, ByWarps(loss) ? GradientKernel<32> : GradientKernel<1>, loss,
         value_gradient, count, parts + count, probability, target, dx);
}

}  // namespace crema::cuda
