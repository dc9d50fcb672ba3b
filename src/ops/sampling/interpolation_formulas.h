// Where bilinear interpolation reads, shared by the CPU and kernels of a GPU. Positions are rounded as in DeepLab's own
// layer, in f32.
#ifndef CREMA_OPS_SAMPLING_INTERPOLATION_FORMULAS_H_
#define CREMA_OPS_SAMPLING_INTERPOLATION_FORMULAS_H_

#include "ops/arrays/functors.h"
#include "ops/sampling/interpolation.h"

namespace crema::interpolation {

// What an element of the result is made of: (1 - weight) * source[first] + weight * source[second].
struct Source {
  int32_t first, second;
  float weight;

  // Of an element of the source.
  CREMA_FORMULA float Of(int32_t element) const {
    return (first == element ? 1.0f - weight : 0.0f) + (second == element ? weight : 0.0f);
  }
};

// Elements [begin, end).
struct Range {
  int32_t begin, end;
};

struct Axis {
  int32_t source, result;  // extents
  float step;              // in the source, from one element of the result to the next

  CREMA_FORMULA Axis(int64_t source_extent, int64_t result_extent)
      : source(static_cast<int32_t>(source_extent)),
        result(static_cast<int32_t>(result_extent)),
        step(result > 1 ? static_cast<float>(source - 1) / static_cast<float>(result - 1) : 0.0f) {}

  CREMA_FORMULA int32_t First(int32_t i) const {
    const auto first = static_cast<int32_t>(step * static_cast<float>(i));
    return first < source ? first : source - 1;
  }
  CREMA_FORMULA Source At(int32_t i) const {
    const float at = step * static_cast<float>(i);
    const int32_t first = First(i);
    const float weight = at - static_cast<float>(first);
    const bool between = (weight > 0.0f) & (first < source - 1);
    return {first, between ? first + 1 : first, weight};
  }

  // The elements of the result that may read one of the source.
  CREMA_FORMULA Range Readers(int32_t element) const {
    if (step == 0.0f) return {0, element == 0 ? result : 0};
    return {FirstFrom(element - 1), FirstFrom(element + 1)};
  }

 private:
  // The first i with First(i) >= element, `result` where there is none.
  CREMA_FORMULA int32_t FirstFrom(int32_t element) const {
    if (element <= 0) return 0;
    const float guess = static_cast<float>(element) / step;
    int32_t i = guess < static_cast<float>(result) ? static_cast<int32_t>(guess) : result;
    while (i > 0 && First(i - 1) >= element) --i;
    while (i < result && First(i) < element) ++i;
    return i;
  }
};

struct Axes {
  Axis rows, columns;
  CREMA_FORMULA explicit Axes(const Interpolation& p)
      : rows(p.part_height, p.result_height), columns(p.part_width, p.result_width) {}
};

}  // namespace crema::interpolation

#endif  // CREMA_OPS_SAMPLING_INTERPOLATION_FORMULAS_H_
