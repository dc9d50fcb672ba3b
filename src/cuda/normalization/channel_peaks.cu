#include "cuda/arrays/lanes.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

// One place.
struct ExpOfPlace {
  ClassAxis axis;
  const float* x;
  float* y;

  __device__ void operator()(int64_t place) const {
    int64_t outer = place;
    const int64_t inner = SplitOff(&outer, axis.inner), first = outer * axis.classes * axis.inner + inner;
    const int64_t end = first + axis.classes * axis.inner;
    float largest = x[first];
    for (int64_t at = first; at < end; at += axis.inner) largest = x[at] > largest ? x[at] : largest;
    for (int64_t at = first; at < end; at += axis.inner) y[at] = expf(x[at] - largest);
  }
};

}  // namespace

void CudaOperations::ExpBelowPeak(const ClassAxis& axis, const float* x, float* y) {
  if (axis.classes > 0) ForEach(queue(), axis.positions(), ExpOfPlace{axis, x, y});
}

}  // namespace crema::cuda
