// Adding a vector that is stretched over the other axes. Tensors are seen as outer x values x inner, dense, f32.
#ifndef CREMA_OPS_NORMALIZATION_BIAS_H_
#define CREMA_OPS_NORMALIZATION_BIAS_H_

#include <cstdint>

namespace crema {

struct BiasExtents {
  int64_t outer = 1, values = 1, inner = 1;
  int64_t count() const { return outer * values * inner; }
};

// y = x + bias[value]. y may be x. Threaded.
void AddBias(const BiasExtents& extents, const float* x, const float* bias, float* y);
// gradient[value] = the sum of dy over outer and inner, in an order that does not depend on the number of threads.
void SumToBias(const BiasExtents& extents, const float* dy, float* gradient);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_BIAS_H_
