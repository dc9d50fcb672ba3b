// What windows of a correlation see of each other, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_CONVOLUTION_CORRELATION_FORMULAS_H_
#define CREMA_OPS_CONVOLUTION_CORRELATION_FORMULAS_H_

#include "ops/arrays/elementary_functions.h"

namespace crema::correlation {

struct Multiply {
  CREMA_FORMULA float operator()(float a, float b) const { return a * b; }
};
struct MultiplyGradient {  // by the first one
  CREMA_FORMULA float operator()(float, float b) const { return b; }
};

struct Subtract {
  CREMA_FORMULA float operator()(float a, float b) const { return __builtin_fabsf(a - b); }
};
struct SubtractGradient {
  CREMA_FORMULA float operator()(float a, float b) const { return (a > b ? 1.0f : 0.0f) - (a < b ? 1.0f : 0.0f); }
};

}  // namespace crema::correlation

#endif  // CREMA_OPS_CONVOLUTION_CORRELATION_FORMULAS_H_
