// Moving images from one layout or number type to another.
#ifndef CREMA_OPS_REORDER_H_
#define CREMA_OPS_REORDER_H_

#include "crema/tensor.h"
#include "ops/arrays/axis_permutation.h"

namespace crema {

// What moves between two tensors of one shape, each plain or, with 3 to 5 axes, with channels last.
AxisPermutation PermutationOfLayouts(const Tensor& from, const Tensor& to);

// Copies `from` to `to`: of one shape, each f32 or bf16 (which rounds to the nearest, ties to even), plain or, with 3
// to 5 axes, with channels last. They must not overlap. Threaded; allocates nothing.
void ReorderImage(const Tensor& from, const Tensor& to);

}  // namespace crema

#endif  // CREMA_OPS_REORDER_H_
