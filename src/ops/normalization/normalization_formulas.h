// What becomes of the sums of ops/normalization/normalization.h and ops/normalization/group_norm.h, shared by the CPU
// and kernels of a GPU.
#ifndef CREMA_OPS_NORMALIZATION_NORMALIZATION_FORMULAS_H_
#define CREMA_OPS_NORMALIZATION_NORMALIZATION_FORMULAS_H_

#include <cmath>

#include "ops/arrays/functors.h"
#include "ops/normalization/group_norm.h"
#include "ops/normalization/normalization.h"

namespace crema::normalization {

// Two sums over some numbers, and the one that differences were taken from.
struct Sums {
  double first = 0, second = 0;
  float origin = 0;
};

// Of x - origin and of its square, for n neighbouring elements in CPU memory, on the calling thread.
Sums SumDifferences(int64_t n, const float* x, float origin);

// Makes a row standard.
struct Standard : RowMoments {
  CREMA_FORMULA float operator()(float x) const { return ((x - mean) - mean_rest) * inverse; }
};

// From the sums of x - origin and of its square, `origin` being any element of the row: no element is further from the
// mean than sqrt(width) deviations, so that the difference below keeps its digits in double. Without the inverse.
CREMA_FORMULA Standard StandardOf(int64_t width, const Sums& sums, double* variance) {
  const double n = static_cast<double>(width), offset = sums.first / n;
  const double mean = static_cast<double>(sums.origin) + offset, difference = sums.second / n - offset * offset;
  *variance = difference < 0 ? 0.0 : difference;  // a NaN stays one
  Standard standard;
  standard.mean = static_cast<float>(mean);
  standard.mean_rest = static_cast<float>(mean - static_cast<double>(standard.mean));
  return standard;
}

CREMA_FORMULA Standard StandardOf(const MvnProblem& problem, const Sums& sums) {
  double variance;
  Standard standard = StandardOf(problem.width, sums, &variance);
  if (problem.divide) {
    standard.inverse = static_cast<float>(1.0 / (std::sqrt(variance) + static_cast<double>(problem.eps)));
  }
  return standard;
}

CREMA_FORMULA Standard StandardOf(const GroupNormProblem& problem, const Sums& sums) {
  double variance;
  Standard standard = StandardOf(problem.width(), sums, &variance);
  standard.inverse = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(problem.eps)));
  return standard;
}

struct StandardGradient {
  float mean, of_y, inverse;

  CREMA_FORMULA float operator()(float dy, float y) const { return (dy - mean - y * of_y) * inverse; }
};

// From the sums of dy and of dy * y.
CREMA_FORMULA StandardGradient StandardGradientOf(const MvnProblem& problem, const Sums& sums, float inverse) {
  const double width = static_cast<double>(problem.width);
  return {static_cast<float>(sums.first / width), problem.divide ? static_cast<float>(sums.second / width) : 0.0f,
          problem.divide ? inverse : 1.0f};
}

// dx from g = scale * dy: (g - mean of g - standard x * mean of g * standard x) * inverse.
struct GroupNormGradient {
  float mean, of_standard;
  Standard standard;

  CREMA_FORMULA float operator()(float g, float x) const {
    return (g - mean - standard(x) * of_standard) * standard.inverse;
  }
};

// From the sums of g and of g * standard x.
CREMA_FORMULA GroupNormGradient GroupNormGradientOf(const GroupNormProblem& problem, const Sums& sums,
                                                    const RowMoments& moments) {
  const double width = static_cast<double>(problem.width());
  return {static_cast<float>(sums.first / width), static_cast<float>(sums.second / width), Standard{moments}};
}

// 1 / length, from the sum of squares or sizes.
CREMA_FORMULA float InverseLength(const NormalizeProblem& problem, double sum) {
  const double with_eps = sum + static_cast<double>(problem.eps);
  return static_cast<float>(1.0 / (problem.absolute ? with_eps : std::sqrt(with_eps)));
}

// What x, or its sign, is multiplied by in the gradient; dot: the sum of scale * x * dy.
CREMA_FORMULA float Shrinkage(const NormalizeProblem& problem, double dot, float inverse) {
  const double i = static_cast<double>(inverse);
  return static_cast<float>(problem.absolute ? -dot * i * i : -dot * i * i * i);
}

CREMA_FORMULA float SignOf(float x) { return static_cast<float>(x > 0.0f) - static_cast<float>(x < 0.0f); }

}  // namespace crema::normalization

#endif  // CREMA_OPS_NORMALIZATION_NORMALIZATION_FORMULAS_H_
