#include "cuda/arrays/numbers.h"
#include "cuda/arrays/reduce.h"
#include "cuda/arrays/sums.h"
#include "cuda/device/faults.h"
#include "cuda/losses/labels.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

constexpr int64_t kPartBlocks = 256;        // at most, of sums over positions
constexpr int64_t kCountedDirectly = 1024;  // labels that each block may count for itself

unsigned PartBlocks(int64_t positions, unsigned threads) {
  return static_cast<unsigned>(std::clamp<int64_t>(positions / (4 * threads), 1, kPartBlocks));
}

// Sums of some positions.
struct LossPart {
  double loss, weight;
};

__device__ LossPart SumParts(const LossPart& part) { return {SumBlock(part.loss), SumBlock(part.weight)}; }

__device__ void FinishLoss(const SoftmaxLoss& loss, const LossPart& total, float* value) {
  if (threadIdx.x == 0) *value = static_cast<float>(total.loss / labels::Normalizer(loss, total.weight));
}

__global__ void __launch_bounds__(kThreads)
    LossKernel(SoftmaxLoss loss, const float* probability, const float* label, LossPart* parts, float* value) {
  LossPart part = {0, 0};
  const int64_t step = int64_t{gridDim.x} * blockDim.x, positions = loss.axis.outer * loss.axis.inner;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < positions; i += step) {
    if (!Counts(loss.rule, loss.axis.classes, label[i])) continue;
    const double weight = labels::WeightOf(loss, i, label[i]);
    if (weight != 0) part.loss += weight * labels::FocalLoss(loss, probability, i, label[i]);
    part.weight += labels::Share(loss, label[i]);
  }
  part = SumParts(part);
  if (gridDim.x == 1) {
    FinishLoss(loss, part, value);
  } else if (threadIdx.x == 0) {
    parts[blockIdx.x] = part;
  }
}

__global__ void __launch_bounds__(kThreads)
    FinishLossKernel(SoftmaxLoss loss, unsigned blocks, const LossPart* parts, float* value) {
  LossPart part = {0, 0};
  if (threadIdx.x < blocks) part = parts[threadIdx.x];
  FinishLoss(loss, SumParts(part), value);
}
static_assert(kPartBlocks <= kThreads);

// With smoothing every class of a position has a term: those of elements, whose class and position are found as
// LossBackwardKernel does.
struct SmoothedTerms {
  SoftmaxLoss loss;
  const float *probability, *label;
  __device__ double operator()(int64_t i) const {
    const ClassAxis& axis = loss.axis;
    const int64_t row = i / axis.inner, outer = row / axis.classes, c = row - outer * axis.classes;
    const int64_t position = outer * axis.inner + i - row * axis.inner;
    const float of_place = label[position];
    if (!Counts(loss.rule, axis.classes, of_place)) return 0;
    const float target = labels::Target(loss.smoothing, axis.classes, c == static_cast<int64_t>(of_place));
    const double weight = labels::WeightOf(loss, position, of_place) * target;
    return weight != 0 ? weight * static_cast<double>(labels::Loss(probability[i])) : 0;
  }
};

struct LabelShares {
  SoftmaxLoss loss;
  const float* label;
  __device__ double operator()(int64_t i) const {
    return Counts(loss.rule, loss.axis.classes, label[i]) ? labels::Share(loss, label[i]) : 0;
  }
};

struct KeepSum {
  double* kept;
  __device__ void operator()(double sum) const { *kept = sum; }
};

struct FinishSmoothed {
  SoftmaxLoss loss;
  const double* weight;
  float* value;
  __device__ void operator()(double sum) const { *value = static_cast<float>(sum / labels::Normalizer(loss, *weight)); }
};

__device__ double WeighSome(const SoftmaxLoss& loss, const float* label, int64_t begin, int64_t step) {
  double weight = 0;
  for (int64_t i = begin; i < loss.axis.outer * loss.axis.inner; i += step) {
    if (Counts(loss.rule, loss.axis.classes, label[i])) weight += labels::Share(loss, label[i]);
  }
  return SumBlock(weight);
}

__global__ void __launch_bounds__(kThreads) WeighKernel(SoftmaxLoss loss, const float* label, double* parts) {
  const double weight =
      WeighSome(loss, label, int64_t{blockIdx.x} * blockDim.x + threadIdx.x, int64_t{gridDim.x} * blockDim.x);
  if (threadIdx.x == 0) parts[blockIdx.x] = weight;
}

// What the gradient is made of besides labels.
struct LossGradient {
  SoftmaxLoss loss;
  const float *value_gradient, *probability, *label;
  float* dx;
  const double* weights;  // of the labels that count, in parts; null: each block sums them up
  unsigned weight_parts;

  // All threads of the block must call.
  __device__ float Scale() const {
    double weight = 0;
    if (loss.normalizer <= 0) {
      weight = weights ? SumBlock(threadIdx.x < weight_parts ? weights[threadIdx.x] : 0.0)
                       : WeighSome(loss, label, threadIdx.x, blockDim.x);
    }
    return static_cast<float>(*value_gradient / labels::Normalizer(loss, weight));
  }

  __device__ float Of(float p, int64_t position, int64_t c, float scale) const {
    const float of_label = label[position];
    if (!Counts(loss.rule, loss.axis.classes, of_label)) return 0.0f;
    const float target = labels::Target(loss.smoothing, loss.axis.classes, c == static_cast<int64_t>(of_label));
    float weighted = scale * labels::WeightOf(loss, position, of_label);
    if (loss.focal_gamma > 0) {
      const float own = probability[labels::Offset(loss.axis, position, of_label)];
      weighted *= labels::FocalGradientFactor(loss.focal_gamma, own);
    }
    return labels::Gradient(weighted, p, target);
  }
};

// Each thread has packs: of classes of one position, or of one class of some positions; Index holds their number.
template <int kWidth, bool kOfClasses, typename Index>
__global__ void __launch_bounds__(kThreads) LossBackwardKernel(LossGradient gradient) {
  const float scale = gradient.Scale();
  const ClassAxis& axis = gradient.loss.axis;
  const int64_t packs = axis.outer * axis.classes * axis.inner / kWidth, step = int64_t{gridDim.x} * blockDim.x;
  const auto classes = static_cast<Index>(axis.classes / (kOfClasses ? kWidth : 1));
  const auto inner = static_cast<Index>(axis.inner / (kOfClasses ? 1 : kWidth));
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += step) {
    const Index row = static_cast<Index>(i) / inner, p = static_cast<Index>(i) - row * inner;
    const Index n = row / classes, c = row - n * classes;
    const int64_t position = (static_cast<int64_t>(n) * inner + p) * (kOfClasses ? 1 : kWidth);
    const int64_t first = static_cast<int64_t>(c) * (kOfClasses ? kWidth : 1);
    struct alignas(4 * kWidth) Numbers {
      float values[kWidth];
    };
    Numbers numbers = reinterpret_cast<const Numbers*>(gradient.probability)[i];
    for (int k = 0; k < kWidth; ++k) {
      numbers.values[k] =
          gradient.Of(numbers.values[k], position + (kOfClasses ? 0 : k), first + (kOfClasses ? k : 0), scale);
    }
    reinterpret_cast<Numbers*>(gradient.dx)[i] = numbers;
  }
}

template <int kWidth, bool kOfClasses>
void RunLossBackward(const Queue& queue, const LossGradient& gradient) {
  const int64_t packs = gradient.loss.axis.positions() * gradient.loss.axis.classes / kWidth;
  const unsigned blocks = BlocksFor(queue, packs);
  if (packs <= std::numeric_limits<uint32_t>::max()) {
    Launch(queue, blocks, kThreads, LossBackwardKernel<kWidth, kOfClasses, uint32_t>, gradient);
  } else {
    Launch(queue, blocks, kThreads, LossBackwardKernel<kWidth, kOfClasses, int64_t>, gradient);
  }
}

struct Hits {
  int64_t right, counted;
};

__device__ Hits SumParts(const Hits& part) { return {SumBlock(part.right), SumBlock(part.counted)}; }

__device__ void FinishShare(const Hits& total, float* share) {
  if (threadIdx.x > 0) return;
  *share = total.counted == 0 ? 0.0f : static_cast<float>(total.right) / static_cast<float>(total.counted);
}

// kLanes threads look at one position: 32 where its classes lie next to each other, 1 where those of positions do.
// The arrays by class, which may be null, hold whole numbers until all are counted.
template <unsigned kLanes>
__global__ void __launch_bounds__(kThreads)
    AccuracyKernel(AccuracyProblem problem, const float* scores, const float* label, unsigned* right_of_class,
                   unsigned* labels_of_class, Hits* parts, float* share) {
  const ClassAxis& axis = problem.axis;
  const unsigned lane = threadIdx.x % kLanes;
  const int64_t positions = axis.outer * axis.inner, step = int64_t{gridDim.x} * (kThreads / kLanes);
  Hits hits = {0, 0};
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / kLanes) + threadIdx.x / kLanes; i < positions; i += step) {
    if (!Counts(problem.rule, axis.classes, label[i])) continue;
    const float* score = scores + labels::FirstOffset(axis, i);
    const auto expected = static_cast<int64_t>(label[i]);
    const float own = score[expected * axis.inner];
    int64_t others = 0;
    for (int64_t c = lane; c < axis.classes; c += kLanes) {
      others += labels::IsHigher(score[c * axis.inner], own) ? 1 : 0;
    }
    if constexpr (kLanes > 1) others = SumWarp(others);
    if (lane > 0) continue;
    const bool found = others - 1 < problem.top_k;  // its own score is found, too
    hits.right += found ? 1 : 0;
    ++hits.counted;
    if (!right_of_class) continue;
    atomicAdd(labels_of_class + expected, 1u);
    if (found) atomicAdd(right_of_class + expected, 1u);
  }
  hits = SumParts(hits);
  if (gridDim.x == 1) {
    FinishShare(hits, share);
  } else if (threadIdx.x == 0) {
    parts[blockIdx.x] = hits;
  }
}

__global__ void __launch_bounds__(kThreads) FinishShareKernel(unsigned blocks, const Hits* parts, float* share) {
  Hits hits = {0, 0};
  if (threadIdx.x < blocks) hits = parts[threadIdx.x];
  FinishShare(SumParts(hits), share);
}

struct LabelIsBad {
  LabelRule rule;
  int64_t classes;
  __device__ bool operator()(float label) const { return labels::IsBad(rule, classes, label); }
};

}  // namespace

void CudaOperations::SoftmaxLossForward(const SoftmaxLoss& loss, const float* probability, const float* label,
                                        float* value) {
  const int64_t positions = loss.axis.positions();
  if (loss.smoothing > 0) {
    auto* sums = Scratch<double>((1 + kSumBlocks) * sizeof(double));
    if (loss.normalizer <= 0) SumTerms(queue(), positions, LabelShares{loss, label}, KeepSum{sums}, sums + 1);
    return SumTerms(queue(), positions * loss.axis.classes, SmoothedTerms{loss, probability, label},
                    FinishSmoothed{loss, sums, value}, sums + 1);
  }
  const unsigned blocks = PartBlocks(positions, kThreads);
  auto* parts = Scratch<LossPart>(blocks * sizeof(LossPart));
  Launch(queue(), blocks, kThreads, LossKernel, loss, probability, label, parts, value);
  if (blocks > 1) Launch(queue(), 1, kThreads, FinishLossKernel, loss, blocks, parts, value);
}

void CudaOperations::SoftmaxLossTerms(const SoftmaxLoss& loss, const float* probability, const float* label,
                                      float* terms) {
  ForEach(queue(), loss.axis.positions(), [=] __device__(int64_t i) {
    const bool counts = Counts(loss.rule, loss.axis.classes, label[i]);
    terms[i] = counts ? static_cast<float>(labels::LossTerm(loss, probability, i, label[i])) : 0.0f;
  });
}

void CudaOperations::SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                                         const float* label, float* dx) {
  const ClassAxis& axis = loss.axis;
  if (axis.positions() * axis.classes == 0) return;
  LossGradient gradient = {loss, value_gradient, probability, label, dx, nullptr, 0};
  const bool all_alike = !loss.class_weight || loss.divides_by_labels;
  if (!loss.rule.has_ignore && all_alike && loss.normalizer <= 0) gradient.loss.normalizer = axis.positions();
  if (gradient.loss.normalizer <= 0 && axis.positions() > kCountedDirectly) {
    const unsigned blocks = PartBlocks(axis.positions(), kThreads);
    auto* parts = Scratch<double>(blocks * sizeof(double));
    Launch(queue(), blocks, kThreads, WeighKernel, loss, label, parts);
    gradient.weights = parts;
    gradient.weight_parts = blocks;
  }
  const bool aligned = IsPackAligned(probability) && IsPackAligned(dx);
  if (aligned && axis.inner == 1 && axis.classes % 4 == 0) {
    RunLossBackward<4, true>(queue(), gradient);
  } else if (aligned && axis.inner % 4 == 0) {
    RunLossBackward<4, false>(queue(), gradient);
  } else {
    RunLossBackward<1, true>(queue(), gradient);
  }
}

void CudaOperations::Accuracy(const AccuracyProblem& problem, const float* scores, const float* label, float* share,
                              float* of_class, float* labels_of_class) {
  static_assert(sizeof(unsigned) == sizeof(float));
  auto* right = reinterpret_cast<unsigned*>(of_class);
  auto* all = reinterpret_cast<unsigned*>(labels_of_class);
  const int64_t classes = problem.axis.classes;
  if (of_class) ForEach(queue(), classes, [=] __device__(int64_t c) { right[c] = all[c] = 0; });
  const bool by_warps = problem.axis.inner == 1;
  const unsigned blocks = PartBlocks(problem.axis.positions(), by_warps ? kThreads / 32 : kThreads);
  auto* parts = Scratch<Hits>(blocks * sizeof(Hits));
  Launch(queue(), blocks, kThreads, by_warps ? AccuracyKernel<32> : AccuracyKernel<1>, problem, scores, label, right,
         all, parts, share);
  if (blocks > 1) Launch(queue(), 1, kThreads, FinishShareKernel, blocks, parts, share);
  if (!of_class) return;
  ForEach(queue(), classes, [=] __device__(int64_t c) {
    const auto hits = static_cast<float>(right[c]), counted = static_cast<float>(all[c]);
    of_class[c] = hits / (counted > 0 ? counted : 1.0f);
  });
}

int64_t CudaOperations::FindBadLabel(const LabelRule& rule, int64_t classes, int64_t labels, const float* label) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), labels, label, LabelIsBad{rule, classes});
  return -1;
}

}  // namespace crema::cuda
