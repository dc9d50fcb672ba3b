// The elementwise maximum of several arrays, remembering which one each element came from.
#ifndef CREMA_OPS_MAXIMUM_H_
#define CREMA_OPS_MAXIMUM_H_

#include <cstdint>

namespace crema {

// y = a and from = 0 where a > b, else y = b and from = 1: of equal ones the second, as Caffe does. y may be a or b.
void MaximumOfTwo(int64_t n, const float* a, const float* b, float* y, uint8_t* from);
// Where x > y: y = x and from = index.
void MaximumWith(int64_t n, const float* x, uint8_t index, float* y, uint8_t* from);
// dx = dy where from == index, else 0. dx may be dy.
void MaximumBackward(int64_t n, const float* dy, const uint8_t* from, uint8_t index, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_MAXIMUM_H_
