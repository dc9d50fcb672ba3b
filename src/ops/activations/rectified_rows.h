// Rows copied with a ReLU on the way, for layers that join and part tensors.
#ifndef CREMA_OPS_ACTIVATIONS_RECTIFIED_ROWS_H_
#define CREMA_OPS_ACTIVATIONS_RECTIFIED_ROWS_H_

#include <cstdint>

#include "base/bfloat16.h"

namespace crema {

// A matrix of float or BFloat16 in memory: where it begins and how many elements lie from one row to the next.
template <typename Number>
struct Rows {
  Number* first;
  int64_t stride;
};

// to[row][i] = max(0, from[row][i]) for `rows` rows of `width` elements; NaNs stay. Threaded.
template <typename Number>
void CopyRectified(int64_t rows, int64_t width, Rows<const Number> from, Rows<Number> to);
// to[row][i] = gradient[row][i] where the rectified value is positive, else 0; both lie `stride` elements a row.
template <typename Number>
void CopyRectifiedGradient(int64_t rows, int64_t width, const Number* gradient, const Number* rectified, int64_t stride,
                           Rows<Number> to);

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATIONS_RECTIFIED_ROWS_H_
