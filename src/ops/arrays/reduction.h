// Sums along one axis of dense f32 tensors, outer x reduced x inner.
#ifndef CREMA_OPS_ARRAYS_REDUCTION_H_
#define CREMA_OPS_ARRAYS_REDUCTION_H_

#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// What is summed for each element.
enum class ReducedTerm { kValue, kMagnitude, kSquare };

struct Reduction {
  ReducedTerm term = ReducedTerm::kValue;
  int64_t outer = 1, reduced = 1, inner = 1;  // inner is 1 unless values themselves are summed
  float factor = 1;                           // of the result
};

namespace formula {

CREMA_HOST_DEVICE inline float Term(ReducedTerm term, float x) {
  return term == ReducedTerm::kValue ? x : term == ReducedTerm::kSquare ? x * x : x < 0 ? -x : x;
}
// The derivative of the above; of a magnitude at 0 it is 0.
CREMA_HOST_DEVICE inline float TermGradient(ReducedTerm term, float x) {
  const float sign = static_cast<float>(x > 0) - static_cast<float>(x < 0);
  return term == ReducedTerm::kValue ? 1.0f : term == ReducedTerm::kSquare ? 2 * x : sign;
}

}  // namespace formula

// y[outer][inner] = factor * the sum of the terms of x over the reduced axis. Threaded, in an order that does not
// depend on the number of threads.
void Reduce(const Reduction& reduction, const float* x, float* y);
// dx = factor * dy * the term's derivative. Of values it repeats dy along the axis, times the factor; x is not read
// then and may be null. Threaded.
void ReduceGradient(const Reduction& reduction, const float* dy, const float* x, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_REDUCTION_H_
