#include "ops/losses/soft_targets.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "ops/losses/soft_target_formulas.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 8192;  // values worth waking a thread for
constexpr int64_t kTile = 128;    // neighbouring positions whose classes lie apart
constexpr int64_t kParts = 64;    // that a sum is made of, whatever the number of threads

int64_t GrainOf(int64_t values_of_each) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, values_of_each)); }

// `target`: of class 0 at one position.
float WeightOf(const SoftmaxLoss& loss, const float* target) {
  double sum = 0;
  for (int64_t c = 0; c < loss.axis.classes; ++c) {
    sum += static_cast<double>(soft_targets::Weighted(loss.class_weight, c, target[c * loss.axis.inner]));
  }
  return static_cast<float>(sum);
}

// Of one position whose classes are neighbours.
CREMA_MULTIVERSION double TermOf(const SoftmaxLoss& loss, float weight, const float* probability, const float* target) {
  const soft_targets::Wanted wanted(loss, weight);
  const float* const class_weight = loss.class_weight;
  const int64_t classes = loss.axis.classes;
  float wanted_of[kTile];
  double terms[kTile], sum = 0;
  for (int64_t first = 0; first < classes; first += kTile) {
    const int64_t count = std::min(kTile, classes - first);
    for (int64_t i = 0; i < count; ++i) {
      wanted_of[i] = wanted(soft_targets::Weighted(class_weight, first + i, target[first + i]));
    }
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) terms[i] = soft_targets::Term(wanted_of[i], probability[first + i]);
    for (int64_t i = 0; i < count; ++i) sum += terms[i];
  }
  return sum;
}

// Of some positions, at most kTile: what they weigh, and what they add to the sum of losses before that is weighted.
struct TileSums {
  float weights[kTile];
  double terms[kTile];
};

// Of `width` positions that are neighbours in each class; without the terms where probability is null.
CREMA_MULTIVERSION void SumTile(const SoftmaxLoss& loss, int64_t width, const float* probability, const float* target,
                                TileSums* sums) {
  const int64_t classes = loss.axis.classes, inner = loss.axis.inner;
  double totals[kTile] = {};
  for (int64_t c = 0; c < classes; ++c) {
    const float* const targets = target + c * inner;
    const float factor = soft_targets::Weighted(loss.class_weight, c, 1);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) totals[i] += static_cast<double>(factor * targets[i]);
  }
  for (int64_t i = 0; i < width; ++i) sums->weights[i] = static_cast<float>(totals[i]);
  if (!probability) return;
  // As soft_targets::Wanted has it, which loops would keep in memory.
  const float own = 1.0f - loss.smoothing, share = loss.smoothing / static_cast<float>(classes);
  std::fill_n(sums->terms, width, 0.0);
  for (int64_t c = 0; c < classes; ++c) {
    const float *const targets = target + c * inner, *const probabilities = probability + c * inner;
    const float factor = soft_targets::Weighted(loss.class_weight, c, 1);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      sums->terms[i] += soft_targets::Term(own * (factor * targets[i]) + share * sums->weights[i], probabilities[i]);
    }
  }
}

// Calls body(i, weight of position i, what it adds to the sum of losses) for positions [begin, end), in order; without
// the latter where probability is null.
template <typename Body>
void ForPositions(const SoftmaxLoss& loss, const float* probability, const float* target, int64_t begin, int64_t end,
                  const Body& body) {
  const int64_t inner = loss.axis.inner;
  TileSums sums;
  for (int64_t first = begin; first < end;) {
    const int64_t at = labels::FirstOffset(loss.axis, first);
    const int64_t width = std::min({kTile, end - first, inner - first % inner});
    const float* const probabilities = probability ? probability + at : nullptr;
    if (inner == 1) {
      sums.weights[0] = WeightOf(loss, target + at);
      if (probability) sums.terms[0] = TermOf(loss, sums.weights[0], probabilities, target + at);
    } else {
      SumTile(loss, width, probabilities, target + at, &sums);
    }
    for (int64_t i = 0; i < width; ++i) {
      body(first + i, sums.weights[i], probability ? Weighted(loss.weights[first + i], sums.terms[i]) : 0.0);
    }
    first += width;
  }
}

CREMA_MULTIVERSION bool AnyIsBad(int64_t n, const float* target) {
  int32_t bad = 0;
#pragma omp simd reduction(| : bad)
  for (int64_t i = 0; i < n; ++i) bad |= soft_targets::IsBad(target[i]) ? 1 : 0;
  return bad != 0;
}

struct PartSums {
  double terms = 0, weights = 0;
};

// Sums over all positions; the terms are left out where probability is null.
PartSums SumPositions(const SoftmaxLoss& loss, const float* probability, const float* target) {
  PartSums parts[kParts];
  const int64_t positions = loss.axis.positions();
  ParallelFor(kParts, GrainOf(positions * loss.axis.classes / kParts), [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      ForPositions(loss, probability, target, positions * part / kParts, positions * (part + 1) / kParts,
                   [&](int64_t, float weight, double term) {
                     parts[part].weights += static_cast<double>(weight);
                     parts[part].terms += term;
                   });
    }
  });
  PartSums sums;
  for (const PartSums& part : parts) {
    sums.terms += part.terms;
    sums.weights += part.weights;
  }
  return sums;
}

// Of one position whose classes are neighbours.
CREMA_MULTIVERSION void RowGradient(const SoftmaxLoss& loss, float scale, float weight, const float* probability,
                                    const float* target, float* dx) {
  const soft_targets::Wanted wanted(loss, weight);
  const float* const class_weight = loss.class_weight;
  const int64_t classes = loss.axis.classes;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) {
    const float weighted = soft_targets::Weighted(class_weight, c, target[c]);
    dx[c] = labels::Gradient(scale, weight * probability[c], wanted(weighted));
  }
}

// Of `width` positions from `first` on, at most kTile, that are neighbours in each class.
CREMA_MULTIVERSION void TileGradient(const SoftmaxLoss& loss, float scale, int64_t first, int64_t width,
                                     const float* probability, const float* target, float* dx) {
  const int64_t classes = loss.axis.classes, inner = loss.axis.inner;
  float weights[kTile] = {}, scales[kTile];
  for (int64_t i = 0; i < width; ++i) scales[i] = scale * loss.weights[first + i];
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      weights[i] += soft_targets::Weighted(loss.class_weight, c, target[c * inner + i]);
    }
  }
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const soft_targets::Wanted wanted(loss, weights[i]);
      const float weighted = soft_targets::Weighted(loss.class_weight, c, target[c * inner + i]);
      dx[c * inner + i] = labels::Gradient(scales[i], weights[i] * probability[c * inner + i], wanted(weighted));
    }
  }
}

}  // namespace

int64_t FindBadTarget(int64_t count, const float* target) {
  std::atomic<int64_t> first = count;
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    if (!AnyIsBad(end - begin, target + begin)) return;
    const auto bad = std::find_if(target + begin, target + end, soft_targets::IsBad) - target;
    int64_t known = first;
    while (bad < known && !first.compare_exchange_weak(known, bad)) {
    }
  });
  return first == count ? -1 : first.load();
}

void SoftTargetLossForward(const SoftmaxLoss& loss, const float* probability, const float* target, float* value) {
  const PartSums sums = SumPositions(loss, probability, target);
  *value = static_cast<float>(sums.terms / labels::Normalizer(loss, sums.weights));
}

void SoftTargetLossTerms(const SoftmaxLoss& loss, const float* probability, const float* target, float* terms) {
  // Whole tiles, whatever the number of threads: vectors may round otherwise than the rest of a loop.
  const int64_t inner = loss.axis.inner, tiles = (inner + kTile - 1) / kTile;
  const int64_t grain = GrainOf(loss.axis.classes * std::min(inner, kTile));
  ParallelFor(loss.axis.outer * tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile / tiles * inner, first = tile % tiles * kTile;
      ForPositions(loss, probability, target, row + first, row + std::min(inner, first + kTile),
                   [&](int64_t i, float, double term) { terms[i] = static_cast<float>(term); });
    }
  });
}

void SoftTargetLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                            const float* target, float* dx) {
  const ClassAxis& axis = loss.axis;
  const double weights = loss.normalizer > 0 ? 0 : SumPositions(loss, nullptr, target).weights;
  const auto scale = static_cast<float>(*value_gradient / labels::Normalizer(loss, weights));
  if (axis.inner == 1) {
    return ParallelFor(axis.outer, GrainOf(axis.classes), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * axis.classes;
        RowGradient(loss, scale * loss.weights[row], WeightOf(loss, target + at), probability + at, target + at,
                    dx + at);
      }
    });
  }
  const int64_t tiles = (axis.inner + kTile - 1) / kTile;
  ParallelFor(axis.outer * tiles, GrainOf(axis.classes * std::min(axis.inner, kTile)), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t outer = tile / tiles, inner = tile % tiles * kTile;
      const int64_t at = outer * axis.classes * axis.inner + inner, width = std::min(kTile, axis.inner - inner);
      TileGradient(loss, scale, outer * axis.inner + inner, width, probability + at, target + at, dx + at);
    }
  });
}

}  // namespace crema
