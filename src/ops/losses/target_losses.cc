#include "ops/losses/target_losses.h"

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/elementwise.h"
#include "ops/arrays/sums.h"
#include "ops/arrays/vector_math.h"
#include "ops/losses/label_formulas.h"
#include "ops/losses/loss_formulas.h"

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

// Elements of inputs that have weights, or of which not all are worked on alike, in `items` of equal size: those that
// have one weight, or those that the caller has; else all at once.
int64_t ItemsOf(const ElementWeights& weights, int64_t count, int64_t of_caller = 1) {
  return weights.elements > 1 ? count / weights.elements : of_caller;
}

// term_of(item): the formula of an item's elements.
template <typename TermOf, typename... Inputs>
double SumItems(int64_t items, const ElementWeights& weights, const TermOf& term_of, int64_t count,
                const Inputs*... inputs) {
  const int64_t size = count / std::max<int64_t>(1, items);
  double sum = 0;
  for (int64_t n = 0; n < items; ++n) {
    const auto term = term_of(n);
    const int64_t first = n * size;
    if (!weights.given()) {
      sum += SumOf(term, size, (inputs + first)...);
    } else if (weights.elements == 1) {
      const formula::WeightedBy<std::decay_t<decltype(term)>> weighted = {term};
      sum += SumOf(weighted, size, weights.data + first, (inputs + first)...);
    } else if (weights.data[n] != 0) {
      sum += static_cast<double>(weights.data[n]) * SumOf(term, size, (inputs + first)...);
    }
  }
  return sum;
}

template <typename GradientOf, typename... Inputs>
void MapItems(int64_t items, const ElementWeights& weights, const GradientOf& gradient_of, float factor,
              const Tensor& output, const Inputs*... inputs) {
  const int64_t size = output.count() / std::max<int64_t>(1, items);
  for (int64_t n = 0; n < items; ++n) {
    const auto gradient = gradient_of(n);
    using Gradient = std::decay_t<decltype(gradient)>;
    const int64_t first = n * size;
    float* const to = output.f32() + first;
    if (weights.given() && weights.elements == 1) {
      const formula::Times<formula::WeightedBy<Gradient>> weighted = {{gradient}, factor};
      MapFloats(weighted, size, to, weights.data + first, (inputs + first)...);
      continue;
    }
    const float weight = weights.given() ? weights.data[n] : 1.0f;
    if (weight == 0) {
      Fill(size, 0, to);
    } else {
      MapFloats(formula::Times<Gradient>{gradient, factor * weight}, size, to, (inputs + first)...);
    }
  }
}

// Calls body with the formula of each item.
template <typename Formula, typename Body>
auto WithBalance(const Formula& formula, const SigmoidBalance* balance, const Body& body) {
  if (!balance) return body([&](int64_t) { return formula; });
  return body([&](int64_t item) { return formula::BalancedBy<Formula>{formula, balance[item]}; });
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
    const int64_t count = inputs.a.count();
    const auto term = [&](int64_t) { return formula::DifferenceTerm{loss}; };
    const double sum =
        SumItems(ItemsOf(inputs.weights, count), inputs.weights, term, count, inputs.a.f32(), inputs.b.f32());
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
    const auto gradient = [&](int64_t) { return formula::DifferenceGradient{loss}; };
    const int64_t items = ItemsOf(inputs.weights, inputs.a.count());
    const float *const a = inputs.a.f32(), *const b = inputs.b.f32();
    if (da.defined()) MapItems(items, inputs.weights, gradient, scale, da, a, b);
    if (db.defined()) MapItems(items, inputs.weights, gradient, -scale, db, a, b);
    return;
  }
  WithInputs(inputs, [&](const auto&... tensors) {
    const formula::DifferenceGradient gradient = {loss};
    if (da.defined()) Map(formula::Times<formula::DifferenceGradient>{gradient, scale}, da, tensors...);
    if (db.defined()) Map(formula::Times<formula::DifferenceGradient>{gradient, -scale}, db, tensors...);
  });
}

void SigmoidLossForward(const SigmoidLoss& loss, const SigmoidInputs& inputs, const SigmoidTape& tape, float* value) {
  const int64_t count = inputs.x.count();
  const float *const x = inputs.x.f32(), *const target = inputs.target.f32();
  const formula::SigmoidTerm term = {loss.rule};
  double counted = 0, sum = 0;
  if (loss.balanced_items > 0) {
    const int64_t size = count / loss.balanced_items;
    for (int64_t n = 0; n < loss.balanced_items; ++n) {
      const double ones = SumOf(formula::CountedAs{loss.rule, 1}, size, target + n * size);
      const double zeros = SumOf(formula::CountedAs{loss.rule, 0}, size, target + n * size);
      tape.balance[n] = formula::BalanceOf(loss, ones, zeros);
      counted += ones + zeros;
    }
  } else if (loss.normalizer <= 0) {
    counted = SumOf(formula::CountedTarget{loss.rule}, count, target);
  }
  if (loss.balanced_items == 0 && !inputs.weights.given()) {
    sum = SumOf(term, count, x, target);
  } else {
    const int64_t items = ItemsOf(inputs.weights, count, std::max<int64_t>(1, loss.balanced_items));
    sum = WithBalance(term, tape.balance,
                      [&](const auto& term_of) { return SumItems(items, inputs.weights, term_of, count, x, target); });
  }
  const double divisor = loss.normalizer > 0 ? static_cast<double>(loss.normalizer) : std::max(1.0, counted);
  *tape.normalizer = static_cast<float>(divisor);
  *value = static_cast<float>(sum / divisor);
}

void SigmoidLossBackward(const SigmoidLoss& loss, const float* value_gradient, const SigmoidTape& tape,
                         const SigmoidInputs& inputs, const Tensor& dx) {
  const formula::SigmoidTermGradient gradient = {loss.rule};
  const float factor = *value_gradient / *tape.normalizer;
  if (loss.balanced_items == 0 && !inputs.weights.given()) {
    return Map(formula::Times<formula::SigmoidTermGradient>{gradient, factor}, dx, inputs.x, inputs.target);
  }
  const int64_t items = ItemsOf(inputs.weights, dx.count(), std::max<int64_t>(1, loss.balanced_items));
  WithBalance(gradient, tape.balance, [&](const auto& gradient_of) {
    MapItems(items, inputs.weights, gradient_of, factor, dx, inputs.x.f32(), inputs.target.f32());
  });
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
