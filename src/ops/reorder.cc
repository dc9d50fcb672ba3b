#include "ops/reorder.h"

#include "base/check.h"

namespace crema {

AxisPermutation PermutationOfLayouts(const Tensor& from, const Tensor& to) {
  const Shape& shape = from.shape();
  CREMA_CHECK(shape == to.shape() && (from.layout() == to.layout() || (shape.axes() >= 3 && shape.axes() <= 5)))
      << "cannot reorder " << shape.ToString() << " to " << to.shape().ToString();
  if (from.layout() == to.layout()) {
    const int64_t extent[] = {shape.count()};
    const int order[] = {0};
    return AxisPermutation(extent, order);
  }
  const bool spreads = to.layout() == Layout::kChannelsLast;
  const int64_t channels = shape[1], pixels = shape.count(2);
  const int64_t extents[] = {shape[0], spreads ? channels : pixels, spreads ? pixels : channels};
  const int order[] = {0, 2, 1};
  return AxisPermutation(extents, order);
}

void ReorderImage(const Tensor& from, const Tensor& to) { PermuteAxes(PermutationOfLayouts(from, to), from, to); }

}  // namespace crema
