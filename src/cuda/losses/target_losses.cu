#include "cuda/losses/losses.h"
#include "cuda/operations.h"
#include "ops/losses/label_formulas.h"
#include "ops/losses/loss_formulas.h"

namespace crema::cuda {

namespace {

constexpr size_t kPartBytes = kSumBlocks * sizeof(double);

struct DifferenceAt {
  const float *a, *b, *inside, *outside;  // the last two may be null
  ElementWeights weights;

  explicit DifferenceAt(const DifferenceInputs& inputs)
      : a(inputs.a.f32()),
        b(inputs.b.f32()),
        inside(inputs.inside.defined() ? inputs.inside.f32() : nullptr),
        outside(inputs.outside.defined() ? inputs.outside.f32() : nullptr),
        weights(inputs.weights) {}

  __device__ float Inside(int64_t i) const { return inside ? inside[i] : 1.0f; }
  __device__ float Outside(int64_t i) const { return outside ? outside[i] : 1.0f; }
  __device__ float operator()(int64_t i) const { return Inside(i) * (a[i] - b[i]); }
};

struct DifferenceTerms {
  formula::DifferenceTerm term;
  DifferenceAt difference;
  __device__ double operator()(int64_t i) const {
    const float of_difference = term.Of(difference(i));
    if (difference.weights.given()) return Weighted(difference.weights[i], of_difference);
    return difference.Outside(i) * of_difference;
  }
};

struct DifferenceGradients {
  formula::DifferenceGradient gradient;
  DifferenceAt difference;
  LossGradientScale scale;
  float *da, *db;  // either may be null

  __device__ void operator()(int64_t i) const {
    const float of_difference = gradient.Of(difference(i)), weight = difference.Outside(i) * difference.Inside(i);
    const float value = difference.weights.given() ? scale() * Weighted(difference.weights[i], of_difference)
                                                   : scale() * weight * of_difference;
    if (da) da[i] = value;
    if (db) db[i] = -value;
  }
};

struct CountedTargets {
  formula::CountedTarget counted;
  const float* target;
  __device__ double operator()(int64_t i) const { return counted(target[i]); }
};

struct BalancedCounts {
  LabelRule rule;
  const float* target;
  __device__ double operator()(int64_t i) const {
    return formula::CountedAs{rule, 1}(target[i]) + formula::CountedAs{rule, 0}(target[i]);
  }
};

// Blocks have an item at a time.
__global__ void __launch_bounds__(kThreads)
    BalanceItems(SigmoidLoss loss, int64_t size, const float* target, SigmoidBalance* balance) {
  for (int64_t n = blockIdx.x; n < loss.balanced_items; n += gridDim.x) {
    double ones = 0, zeros = 0;
    for (int64_t i = n * size + threadIdx.x; i < (n + 1) * size; i += blockDim.x) {
      ones += formula::CountedAs{loss.rule, 1}(target[i]);
      zeros += formula::CountedAs{loss.rule, 0}(target[i]);
    }
    ones = SumBlock(ones);
    zeros = SumBlock(zeros);
    if (threadIdx.x == 0) balance[n] = formula::BalanceOf(loss, ones, zeros);
  }
}

template <typename Formula>
struct BalancedNumbers {
  Formula formula;
  const float *x, *target;
  const SigmoidBalance* balance;
  int64_t size;  // of an item
  __device__ float operator()(int64_t i) const {
    return formula::BalancedBy<Formula>{formula, balance[i / size]}(x[i], target[i]);
  }
};

struct SigmoidTerms {
  formula::SigmoidTerm term;
  const float *x, *target;
  __device__ double operator()(int64_t i) const { return term(x[i], target[i]); }
};

struct SigmoidGradients {
  formula::SigmoidTermGradient gradient;
  const float *x, *target;
  __device__ float operator()(int64_t i) const { return gradient(x[i], target[i]); }
};

// A number of each element times its weight.
template <typename Numbers>
struct WeighedNumbers {
  Numbers numbers;
  ElementWeights weights;
  __device__ auto operator()(int64_t i) const { return Weighted(weights[i], numbers(i)); }
};

template <typename Numbers>
struct ScaledNumbers {
  Numbers numbers;
  LossGradientScale scale;
  float* dx;
  __device__ void operator()(int64_t i) const { dx[i] = scale() * numbers(i); }
};

// Calls body with numbers, or, where the loss is balanced, those of the same formula so, weighed where there are
// weights.
template <typename Numbers, typename Formula, typename Body>
void Weigh(const Numbers& numbers, const Formula& formula, const SigmoidLoss& loss, const SigmoidInputs& inputs,
           const SigmoidTape& tape, const Body& body) {
  const auto weigh = [&](const auto& of_elements) {
    using OfElements = std::decay_t<decltype(of_elements)>;
    if (inputs.weights.given()) return body(WeighedNumbers<OfElements>{of_elements, inputs.weights});
    body(of_elements);
  };
  if (loss.balanced_items == 0) return weigh(numbers);
  const int64_t size = inputs.x.count() / loss.balanced_items;
  weigh(BalancedNumbers<Formula>{formula, inputs.x.f32(), inputs.target.f32(), tape.balance, size});
}

// A warp for each pair.
__global__ void __launch_bounds__(kThreads)
    SquaredDistances(int64_t pairs, int64_t channels, const float* a, const float* b, float* distance) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; i < pairs; i += step) {
    double sum = 0;
    for (int64_t c = lane; c < channels; c += 32) {
      const float d = a[i * channels + c] - b[i * channels + c];
      sum += d * d;
    }
    sum = SumWarp(sum);
    if (lane == 0) distance[i] = static_cast<float>(sum);
  }
}

struct ContrastiveTerms {
  formula::ContrastiveTerm term;
  const float *similar, *distance;
  __device__ double operator()(int64_t i) const { return term(similar[i], distance[i]); }
};

struct ContrastiveGradients {
  formula::ContrastiveTerm term;
  int64_t channels;
  const float *a, *b, *similar, *distance;
  LossGradientScale scale;
  float *da, *db;  // either may be null

  __device__ void operator()(int64_t i) const {
    const int64_t pair = i / channels;
    const float value = scale() * term.Gradient(similar[pair], distance[pair]) * (a[i] - b[i]);
    if (da) da[i] = value;
    if (db) db[i] = -value;
  }
};

// A warp for each triplet.
__global__ void __launch_bounds__(kThreads)
    TripletDifferences(int64_t triplets, int64_t channels, Triplets<const float> x, float* difference) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; i < triplets; i += step) {
    double sum = 0;
    for (int64_t c = i * channels + lane; c < (i + 1) * channels; c += 32) {
      sum += formula::TripletTerm{}(x.anchor[c], x.same[c], x.other[c]);
    }
    sum = SumWarp(sum);
    if (lane == 0) difference[i] = static_cast<float>(sum);
  }
}

struct TripletViolations {
  formula::TripletViolation violation;
  const float* difference;
  __device__ double operator()(int64_t i) const { return violation(difference[i]); }
};

struct TripletGradients {
  TripletViolations violation;
  int64_t channels;
  Triplets<const float> x;
  LossGradientScale scale;
  Triplets<float> dx;  // each may be null

  __device__ void operator()(int64_t i) const {
    const float factor = violation(i / channels) == 0 ? 0 : scale();
    const float anchor = x.anchor[i], same = x.same[i], other = x.other[i];
    if (dx.anchor) dx.anchor[i] = factor * (other - same);
    if (dx.same) dx.same[i] = factor * (same - anchor);
    if (dx.other) dx.other[i] = factor * (anchor - other);
  }
};

float* DataOf(const Tensor& tensor) { return tensor.defined() ? tensor.f32() : nullptr; }

}  // namespace

void CudaOperations::DifferenceLossForward(const DifferenceLoss& loss, const DifferenceInputs& inputs, float* value) {
  SumTerms(queue(), inputs.a.count(), DifferenceTerms{{loss}, DifferenceAt(inputs)}, DivideBy{loss.divisor, value},
           Scratch<double>(kPartBytes));
}

void CudaOperations::DifferenceLossTerms(const DifferenceLoss& loss, const ClassAxis& axis,
                                         const DifferenceInputs& inputs, float* terms) {
  const DifferenceTerms term = {{loss}, DifferenceAt(inputs)};
  ForEach(queue(), axis.positions(), [=] __device__(int64_t i) {
    const int64_t first = labels::FirstOffset(axis, i);
    double sum = 0;
    for (int64_t c = 0; c < axis.classes; ++c) sum += term(first + c * axis.inner);
    terms[i] = static_cast<float>(sum);
  });
}

void CudaOperations::DifferenceLossBackward(const DifferenceLoss& loss, const float* value_gradient,
                                            const DifferenceInputs& inputs, const Tensor& da, const Tensor& db) {
  const LossGradientScale scale = {value_gradient, nullptr, static_cast<float>(loss.divisor)};
  ForEach(queue(), inputs.a.count(), DifferenceGradients{{loss}, DifferenceAt(inputs), scale, DataOf(da), DataOf(db)});
}

void CudaOperations::SigmoidLossForward(const SigmoidLoss& loss, const SigmoidInputs& inputs, const SigmoidTape& tape,
                                        float* value) {
  const int64_t count = inputs.x.count(), items = loss.balanced_items;
  const float *const x = inputs.x.f32(), *const target = inputs.target.f32();
  auto* parts = Scratch<double>(kPartBytes);
  const KeepCount keep = {tape.normalizer};
  if (items > 0) {
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(items, kSumBlocks));
    Launch(queue(), blocks, kThreads, BalanceItems, loss, count / items, target, tape.balance);
    if (loss.normalizer <= 0) SumTerms(queue(), count, BalancedCounts{loss.rule, target}, keep, parts);
  } else if (loss.normalizer <= 0) {
    SumTerms(queue(), count, CountedTargets{{loss.rule}, target}, keep, parts);
  }
  const formula::SigmoidTerm term = {loss.rule};
  Weigh(SigmoidTerms{term, x, target}, term, loss, inputs, tape, [&](const auto& terms) {
    SumTerms(queue(), count, terms, DivideByKept{loss.normalizer, tape.normalizer, value}, parts);
  });
}

void CudaOperations::SigmoidLossBackward(const SigmoidLoss& loss, const float* value_gradient, const SigmoidTape& tape,
                                         const SigmoidInputs& inputs, const Tensor& dx) {
  const formula::SigmoidTermGradient gradient = {loss.rule};
  const SigmoidGradients gradients = {gradient, inputs.x.f32(), inputs.target.f32()};
  Weigh(gradients, gradient, loss, inputs, tape, [&](const auto& numbers) {
    using Numbers = std::decay_t<decltype(numbers)>;
    ForEach(queue(), inputs.x.count(), ScaledNumbers<Numbers>{numbers, {value_gradient, tape.normalizer}, dx.f32()});
  });
}

void CudaOperations::ContrastiveLossForward(const ContrastiveLoss& loss, const float* a, const float* b,
                                            const float* similar, float* squared_distance, float* value) {
  if (loss.pairs > 0) {
    Launch(queue(), BlocksFor(queue(), loss.pairs, kThreads / 32), kThreads, SquaredDistances, loss.pairs,
           loss.channels, a, b, squared_distance);
  }
  SumTerms(queue(), loss.pairs, ContrastiveTerms{{loss.margin, loss.legacy}, similar, squared_distance},
           DivideBy{2.0 * static_cast<double>(loss.pairs), value}, Scratch<double>(kPartBytes));
}

void CudaOperations::ContrastiveLossBackward(const ContrastiveLoss& loss, const float* value_gradient, const float* a,
                                             const float* b, const float* similar, const float* squared_distance,
                                             float* da, float* db) {
  ForEach(queue(), loss.pairs * loss.channels,
          ContrastiveGradients{{loss.margin, loss.legacy},
                               loss.channels,
                               a,
                               b,
                               similar,
                               squared_distance,
                               {value_gradient, nullptr, static_cast<float>(loss.pairs)},
                               da,
                               db});
}

void CudaOperations::TripletLossForward(const TripletLoss& loss, const Triplets<const float>& x, float* difference,
                                        float* value) {
  if (loss.triplets > 0) {
    Launch(queue(), BlocksFor(queue(), loss.triplets, kThreads / 32), kThreads, TripletDifferences, loss.triplets,
           loss.channels, x, difference);
  }
  SumTerms(queue(), loss.triplets, TripletViolations{{loss.margin}, difference},
           DivideBy{2.0 * static_cast<double>(loss.triplets), value}, Scratch<double>(kPartBytes));
}

void CudaOperations::TripletLossBackward(const TripletLoss& loss, const float* value_gradient,
                                         const Triplets<const float>& x, const float* difference,
                                         const Triplets<float>& dx) {
  const LossGradientScale scale = {value_gradient, nullptr, static_cast<float>(loss.triplets)};
  ForEach(queue(), loss.triplets * loss.channels,
          TripletGradients{{{loss.margin}, difference}, loss.channels, x, scale, dx});
}

}  // namespace crema::cuda
