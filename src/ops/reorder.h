// Moving images from one layout to another.
#ifndef CREMA_OPS_REORDER_H_
#define CREMA_OPS_REORDER_H_

#include "crema/tensor.h"

namespace crema {

// Copies `from` to `to`: f32, of one shape of 3 to 5 axes, each plain or with channels last. They must not overlap.
// Threaded; allocates nothing.
void ReorderImage(const Tensor& from, const Tensor& to);

}  // namespace crema

#endif  // CREMA_OPS_REORDER_H_
