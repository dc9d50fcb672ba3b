#include "ops/target_losses.h"

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/elementwise.h"
#include "ops/label_formulas.h"
#include "ops/loss_formulas.h"
#include "ops/sums.h"
#include "ops/vector_math.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for

// Calls body with those inputs that there are.
template <typename Body>
void WithInputs(const DifferenceInputs& inputs, const Body& body) {
  if (inputs.outside.defined()) return body(inputs.a, inputs.b, inputs.inside, inputs.outside);
  if (inputs.inside.defined()) return body(inputs.a, inputs.b, inputs.inside);
  body(inputs.a, inputs.b);
}

// How elements that have weights are worked on: in `items` of `size` each that have one weight, or, where each element
// has its own, all at once.
struct WeightedItems {
  int64_t items, size;
  WeightedItems(const ElementWeights& weights, int64_t count)
      : items(weights.elements > 1 ? count / weights.elements : 1), size(count / std::max<int64_t>(1, items)) {}
};

template <typename Term, typename... Inputs>
double SumWeighted(const ElementWeights& weights, const Term& term, int64_t count, const Inputs*... inputs) {
  if (weights.elements == 1) return SumOf(formula::WeightedBy<Term>{term}, count, weights.data, inputs...);
  const WeightedItems all(weights, count);
  double sum = 0;
  for (int64_t n = 0; n < all.items; ++n) {
    if (weights.data[n] == 0) continue;
    sum += static_cast<double>(weights.data[n]) * SumOf(term, all.size, (inputs + n * all.size)...);
  }
  return sum;
}

template <typename Gradient, typename... Inputs>
void MapWeighted(const ElementWeights& weights, const Gradient& gradient, float factor, const Tensor& output,
                 const Inputs*... inputs) {
  float* const to = output.f32();
  if (weights.elements == 1) {
    const formula::Times<formula::WeightedBy<Gradient>> weighted = {{gradient}, factor};
    return MapFloats(weighted, output.count(), to, weights.data, inputs...);
  }
  const WeightedItems all(weights, output.count());
  for (int64_t n = 0; n < all.items; ++n) {
    const int64_t first = n * all.size;
    if (weights.data[n] == 0) {
      Fill(all.size, 0, to + first);
    } else {
      MapFloats(formula::Times<Gradient>{gradient, factor * weights.data[n]}, all.size, to + first,
                (inputs + first)...);
    }
  }
}

CREMA_MULTIVERSION void SquaredDistances(int64_t pairs, int64_t channels, const float* a, const float* b,
                                         float* distance) {
  for (int64_t i = 0; i < pairs; ++i, a += channels, b += channels) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < channels; ++c) {
      const float d = a[c] - b[c];
      sum += d * d;
    }
    distance[i] = static_cast<float>(sum);
  }
}

CREMA_MULTIVERSION void ScaledDifference(int64_t n, float scale, const float* a, const float* b, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = scale * (a[i] - b[i]);
}

CREMA_MULTIVERSION void TripletDifferences(int64_t triplets, int64_t channels, const float* anchor, const float* same,
                                           const float* other, float* difference) {
  const formula::TripletTerm term;
  for (int64_t i = 0; i < triplets; ++i, anchor += channels, same += channels, other += channels) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < channels; ++c) sum += term(anchor[c], same[c], other[c]);
    difference[i] = static_cast<float>(sum);
  }
}

// Vectors worth waking a thread for.
int64_t VectorGrain(int64_t channels) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, channels)); }

}  // namespace

void DifferenceLossForward(const DifferenceLoss& loss, const DifferenceInputs& inputs, float* value) {
  if (inputs.weights.given()) {
    const double sum =
        SumWeighted(inputs.weights, formula::DifferenceTerm{loss}, inputs.a.count(), inputs.a.f32(), inputs.b.f32());
    *value = static_cast<float>(sum / loss.divisor);
    return;
  }
  WithInputs(inputs, [&](const auto&... tensors) {
    const double sum = SumOf(formula::DifferenceTerm{loss}, inputs.a.count(), tensors.f32()...);
    *value = static_cast<float>(sum / loss.divisor);
  });
}

void DifferenceLossTerms(const DifferenceLoss& loss, const ClassAxis& axis, const DifferenceInputs& inputs,
                         float* terms) {
  WithInputs(inputs, [&](const auto&... tensors) {
    const formula::DifferenceTerm term = {loss};
    ParallelFor(axis.positions(), std::max<int64_t>(1, kGrain / axis.classes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = labels::FirstOffset(axis, i);
        double sum = 0;
        for (int64_t c = 0; c < axis.classes; ++c) {
          sum += static_cast<double>(term(tensors.f32()[first + c * axis.inner]...));
        }
        terms[i] = static_cast<float>(sum);
      }
    });
  });
}

void DifferenceLossBackward(const DifferenceLoss& loss, const float* value_gradient, const DifferenceInputs& inputs,
                            const Tensor& da, const Tensor& db) {
  const float scale = static_cast<float>(*value_gradient / loss.divisor);
  if (inputs.weights.given()) {
    const formula::DifferenceGradient gradient = {loss};
    const float *const a = inputs.a.f32(), *const b = inputs.b.f32();
    if (da.defined()) MapWeighted(inputs.weights, gradient, scale, da, a, b);
    if (db.defined()) MapWeighted(inputs.weights, gradient, -scale, db, a, b);
    return;
  }
  WithInputs(inputs, [&](const auto&... tensors) {
    const formula::DifferenceGradient gradient = {loss};
    if (da.defined()) Map(formula::Times<formula::DifferenceGradient>{gradient, scale}, da, tensors...);
    if (db.defined()) Map(formula::Times<formula::DifferenceGradient>{gradient, -scale}, db, tensors...);
  });
}

void SigmoidLossForward(const SigmoidLoss& loss, const SigmoidInputs& inputs, float* normalizer, float* value) {
  const int64_t count = inputs.x.count();
  const float *const x = inputs.x.f32(), *const target = inputs.target.f32();
  const double divisor = loss.normalizer > 0 ? static_cast<double>(loss.normalizer)
                                             : std::max(1.0, SumOf(formula::CountedTarget{loss.rule}, count, target));
  const formula::SigmoidTerm term = {loss.rule};
  const double sum =
      inputs.weights.given() ? SumWeighted(inputs.weights, term, count, x, target) : SumOf(term, count, x, target);
  *normalizer = static_cast<float>(divisor);
  *value = static_cast<float>(sum / divisor);
}

void SigmoidLossBackward(const SigmoidLoss& loss, const float* value_gradient, const float* normalizer,
                         const SigmoidInputs& inputs, const Tensor& dx) {
  const formula::SigmoidTermGradient gradient = {loss.rule};
  const float factor = *value_gradient / *normalizer;
  if (inputs.weights.given()) {
    return MapWeighted(inputs.weights, gradient, factor, dx, inputs.x.f32(), inputs.target.f32());
  }
  Map(formula::Times<formula::SigmoidTermGradient>{gradient, factor}, dx, inputs.x, inputs.target);
}

void ContrastiveLossForward(const ContrastiveLoss& loss, const float* a, const float* b, const float* similar,
                            float* squared_distance, float* value) {
  ParallelFor(loss.pairs, VectorGrain(loss.channels), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * loss.channels;
    SquaredDistances(end - begin, loss.channels, a + first, b + first, squared_distance + begin);
  });
  const formula::ContrastiveTerm term = {loss.margin, loss.legacy};
  const double sum = SumOf(term, loss.pairs, similar, static_cast<const float*>(squared_distance));
  *value = static_cast<float>(sum / static_cast<double>(loss.pairs) / 2);
}

void ContrastiveLossBackward(const ContrastiveLoss& loss, const float* value_gradient, const float* a, const float* b,
                             const float* similar, const float* squared_distance, float* da, float* db) {
  const formula::ContrastiveTerm term = {loss.margin, loss.legacy};
  const float scale = *value_gradient / static_cast<float>(loss.pairs);
  ParallelFor(loss.pairs, VectorGrain(loss.channels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * loss.channels;
      const float factor = scale * term.Gradient(similar[i], squared_distance[i]);
      if (da) ScaledDifference(loss.channels, factor, a + first, b + first, da + first);
      if (db) ScaledDifference(loss.channels, -factor, a + first, b + first, db + first);
    }
  });
}

void TripletLossForward(const TripletLoss& loss, const Triplets<const float>& x, float* difference, float* value) {
  ParallelFor(loss.triplets, VectorGrain(loss.channels), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * loss.channels;
    TripletDifferences(end - begin, loss.channels, x.anchor + first, x.same + first, x.other + first,
                       difference + begin);
  });
  const formula::TripletViolation violation = {loss.margin};
  const double sum = SumOf(violation, loss.triplets, static_cast<const float*>(difference));
  *value = static_cast<float>(sum / static_cast<double>(loss.triplets) / 2);
}

void TripletLossBackward(const TripletLoss& loss, const float* value_gradient, const Triplets<const float>& x,
                         const float* difference, const Triplets<float>& dx) {
  const formula::TripletViolation violation = {loss.margin};
  const float scale = *value_gradient / static_cast<float>(loss.triplets);
  ParallelFor(loss.triplets, VectorGrain(loss.channels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * loss.channels;
      const float *anchor = x.anchor + first, *same = x.same + first, *other = x.other + first;
      const float factor = violation(difference[i]) == 0 ? 0 : scale;
      if (dx.anchor) ScaledDifference(loss.channels, factor, other, same, dx.anchor + first);
      if (dx.same) ScaledDifference(loss.channels, factor, same, anchor, dx.same + first);
      if (dx.other) ScaledDifference(loss.channels, factor, anchor, other, dx.other + first);
    }
  });
}

}  // namespace crema
