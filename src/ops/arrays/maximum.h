// The elementwise maximum of several arrays, remembering which one each element came from. Number: float or BFloat16.
#ifndef CREMA_OPS_ARRAYS_MAXIMUM_H_
#define CREMA_OPS_ARRAYS_MAXIMUM_H_

#include <cstdint>

#include "ops/arrays/functors.h"

namespace crema {

namespace formula {

struct Chosen {
  float value;
  uint8_t from;
};

struct MaximumOfTwo {
  CREMA_FORMULA Chosen operator()(float a, float b) const {
    return {a > b ? a : b, static_cast<uint8_t>(a > b ? 0 : 1)};
  }
};

struct MaximumWith {
  uint8_t index;
  CREMA_FORMULA Chosen operator()(float x, Chosen best) const {
    return {x > best.value ? x : best.value, x > best.value ? index : best.from};
  }
};

struct MaximumGradient {
  uint8_t index;
  CREMA_FORMULA float operator()(float dy, uint8_t from) const { return from == index ? dy : 0.0f; }
};

}  // namespace formula

// y = a and from = 0 where a > b, else y = b and from = 1: of equal ones the second, as Caffe does. y may be a or b.
template <typename Number>
void MaximumOfTwo(int64_t n, const Number* a, const Number* b, Number* y, uint8_t* from);
// Where x > y: y = x and from = index.
template <typename Number>
void MaximumWith(int64_t n, const Number* x, uint8_t index, Number* y, uint8_t* from);
// dx = dy where from == index, else 0. dx may be dy.
template <typename Number>
void MaximumBackward(int64_t n, const Number* dy, const uint8_t* from, uint8_t index, Number* dx);

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_MAXIMUM_H_
