// The axes of a tensor in the order of its memory, for layers that take images with channels last.
#ifndef CREMA_LAYERS_MEMORY_AXES_H_
#define CREMA_LAYERS_MEMORY_AXES_H_

#include "crema/tensor.h"

namespace crema {

// `extents`, one for each axis as files name them, in the order of memory: the densest axis last.
template <typename Extents>
Extents InMemoryOrder(Layout layout, const Extents& extents) {
  if (layout == Layout::kPlain) return extents;
  Extents moved(extents.begin(), extents.end());
  moved.erase(moved.begin() + 1);
  moved.push_back(extents[1]);
  return moved;
}

// The extents of a tensor in the order of memory: the same elements as a plain tensor of this shape.
inline Shape InMemoryOrder(const TensorSpec& spec) { return Shape(InMemoryOrder(spec.layout, spec.shape.dims())); }

// Where `axis`, as files name it, is in a shape of memory order.
inline int AxisInMemory(const TensorSpec& spec, int axis) {
  if (spec.layout == Layout::kPlain || axis == 0) return axis;
  return axis == 1 ? spec.shape.axes() - 1 : axis - 1;
}

}  // namespace crema

#endif  // CREMA_LAYERS_MEMORY_AXES_H_
