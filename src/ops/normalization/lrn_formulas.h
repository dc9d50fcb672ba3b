// The formulas of LRN that its kernels share.
#ifndef CREMA_OPS_NORMALIZATION_LRN_FORMULAS_H_
#define CREMA_OPS_NORMALIZATION_LRN_FORMULAS_H_

#include "ops/arrays/functors.h"

namespace crema::formula {

CREMA_FORMULA float SquareRoot(float x) {
#if defined(__CUDA_ARCH__)
  return sqrtf(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// scale^-0.75, the power of nearly every net (AlexNet's): two square roots beat a general power by far.
struct MinusThreeQuarters {
  CREMA_FORMULA float operator()(float scale) const {
    const float root = SquareRoot(scale);
    return 1.0f / (root * SquareRoot(root));
  }
};

struct MinusHalf {
  CREMA_FORMULA float operator()(float scale) const { return 1.0f / SquareRoot(scale); }
};

// What a result's gradient gives: to its own element, and, times the elements, to those of its window.
struct LrnTerms {
  float direct, ratio;
  CREMA_FORMULA LrnTerms(float dy, float power, float scale, float x) : direct(dy * power), ratio(direct * x / scale) {}
};

// The gradient of element x; sum: of the ratios of the windows that hold it; weight: 2 beta alpha / size.
struct LrnGradient {
  float weight;
  CREMA_FORMULA float operator()(float direct, float x, float sum) const { return direct - weight * x * sum; }
};

}  // namespace crema::formula

#endif  // CREMA_OPS_NORMALIZATION_LRN_FORMULAS_H_
