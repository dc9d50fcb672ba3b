// What becomes of the sums of ops/normalization.h, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_NORMALIZATION_FORMULAS_H_
#define CREMA_OPS_NORMALIZATION_FORMULAS_H_

#include <cmath>

#include "ops/functors.h"
#include "ops/normalization.h"

namespace crema::normalization {

// Two sums over some numbers, and the one that differences were taken from.
struct Sums {
  double first = 0, second = 0;
  float origin = 0;
};

// What makes a row standard. The mean comes in two parts, so that digits of rows far from 0 are not lost.
struct Standard {
  float mean, mean_rest, inverse;

  CREMA_FORMULA float operator()(float x) const { return ((x - mean) - mean_rest) * inverse; }
};

// From the sums of x - origin and of its square, `origin` being any element of the row: no element is further from the
// mean than sqrt(width) deviations, so that the difference below keeps its digits in double.
CREMA_FORMULA Standard StandardOf(const MvnProblem& problem, const Sums& sums) {
  const double width = static_cast<double>(problem.width), offset = sums.first / width;
  const double mean = static_cast<double>(sums.origin) + offset;
  Standard standard;
  standard.mean = static_cast<float>(mean);
  standard.mean_rest = static_cast<float>(mean - static_cast<double>(standard.mean));
  standard.inverse = 1.0f;
  if (problem.divide) {
    const double variance = sums.second / width - offset * offset;
    const double deviation = std::sqrt(variance < 0 ? 0.0 : variance);  // a NaN stays one
    standard.inverse = static_cast<float>(1.0 / (deviation + static_cast<double>(problem.eps)));
  }
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

// 1 / length.
CREMA_FORMULA float InverseLength(double squares, float eps) {
  return static_cast<float>(1.0 / std::sqrt(squares + static_cast<double>(eps)));
}

// What x is multiplied by in the gradient; dot: the sum of scale * x * dy.
CREMA_FORMULA float Shrinkage(double dot, float inverse) {
  const double i = static_cast<double>(inverse);
  return static_cast<float>(-dot * i * i * i);
}

}  // namespace crema::normalization

#endif  // CREMA_OPS_NORMALIZATION_FORMULAS_H_
