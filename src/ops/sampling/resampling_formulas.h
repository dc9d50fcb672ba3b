// What elements of a resampled image are made of, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_SAMPLING_RESAMPLING_FORMULAS_H_
#define CREMA_OPS_SAMPLING_RESAMPLING_FORMULAS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/arrays/elementary_functions.h"
#include "ops/sampling/resampling.h"

namespace crema::resampling {

using Axis = Resampling::Axis;
using Filter = Resampling::Filter;

// The distance at which elements cease to count, of a filter of width 1.
CREMA_FORMULA double RadiusOf(Filter filter) {
  return filter == Filter::kNearest ? 0.5 : filter == Filter::kLinear ? 1.0 : 2.0;
}

CREMA_FORMULA double WeightOf(Filter filter, double distance) {
  const double x = std::fabs(distance);
  if (filter == Filter::kNearest) return 1.0;
  if (filter == Filter::kLinear) return x < 1.0 ? 1.0 - x : 0.0;
  if (x <= 1.0) return (1.5 * x - 2.5) * x * x + 1.0;
  return x < 2.0 ? ((2.5 - 0.5 * x) * x - 4.0) * x + 2.0 : 0.0;
}

// Of places: those in the middle between two elements go to the latter one, and those on one take of no other.
inline constexpr double kRounding = 1e-9;

// The first of the `taps` elements that element i of the result may be made of.
CREMA_FORMULA int64_t FirstOf(const Axis& axis, Filter filter, int64_t i) {
  const double place = axis.PlaceOf(i);
  const double first = filter == Filter::kNearest ? std::floor(place + 0.5 + kRounding)
                                                  : std::floor(place - RadiusOf(filter) * axis.width) + 1.0;
  const auto last = static_cast<double>(axis.extent - axis.taps);
  return static_cast<int64_t>(first < 0.0 ? 0.0 : first < last ? first : last);
}

// Elements [begin, end).
struct Range {
  int64_t begin, end;
};

// At least those of the result that are made of an element of the source.
CREMA_FORMULA Range ReadersOf(const Axis& axis, Filter filter, int64_t element) {
  const double reach = RadiusOf(filter) * axis.width, at = static_cast<double>(element);
  const double begin = std::floor((at - reach - axis.shift) / axis.scale) - 1.0;
  const double end = std::ceil((at + reach - axis.shift) / axis.scale) + 2.0;
  const auto most = static_cast<double>(axis.result);
  return {static_cast<int64_t>(begin > 0.0 ? begin : 0.0), static_cast<int64_t>(end < most ? end : most)};
}

// What is known of each element of the result on one axis: `weights`, taps x result, and `first`, result.
struct Table {
  float* weights;
  int32_t* first;

  CREMA_FORMULA void Fill(const Axis& axis, Filter filter, int64_t i) const {
    const int64_t begin = FirstOf(axis, filter, i);
    const double place = axis.PlaceOf(i);
    double sum = 0;
    for (int64_t k = 0; k < axis.taps; ++k) {
      sum += WeightOf(filter, (place - static_cast<double>(begin + k)) / axis.width);
    }
    for (int64_t k = 0; k < axis.taps; ++k) {
      const double exact = WeightOf(filter, (place - static_cast<double>(begin + k)) / axis.width);
      const double weight = std::fabs(exact) < kRounding ? 0.0 : exact;  // which places have rounding of
      weights[k * axis.result + i] = static_cast<float>(weight / sum);
    }
    first[i] = static_cast<int32_t>(begin);
  }
  // How much element i of the result is made of `element`.
  CREMA_FORMULA float Of(const Axis& axis, int64_t i, int64_t element) const {
    const int64_t k = element - first[i];
    return k >= 0 && k < axis.taps ? weights[k * axis.result + i] : 0.0f;
  }
};

inline size_t TableBytes(const Axis& axis) {
  return static_cast<size_t>((axis.taps + 1) * axis.result) * sizeof(float);
}
inline size_t WorkspaceOf(const Resampling& p) { return TableBytes(p.rows) + TableBytes(p.columns); }

struct Tables {
  Table rows, columns;

  Tables(const Resampling& p, std::byte* workspace)
      : rows(At(p.rows, workspace)), columns(At(p.columns, workspace + TableBytes(p.rows))) {}

 private:
  static Table At(const Axis& axis, std::byte* memory) {
    auto* const weights = reinterpret_cast<float*>(memory);
    return {weights, reinterpret_cast<int32_t*>(weights + axis.taps * axis.result)};
  }
};

// What a mean without NaNs is: of elements that are numbers, the sums of weighted values and of weights, and of the
// others the sum of weights.
CREMA_FORMULA float MeanOfKnown(float sum, float known, float unknown) {
  return unknown > 0.5f * known ? __builtin_nanf("") : sum / known;
}

}  // namespace crema::resampling

#endif  // CREMA_OPS_SAMPLING_RESAMPLING_FORMULAS_H_
