// Parts of mean-field inference that the CPU and GPUs share.
#ifndef CREMA_OPS_MEAN_FIELD_MEAN_FIELD_FORMULAS_H_
#define CREMA_OPS_MEAN_FIELD_MEAN_FIELD_FORMULAS_H_

#include <cstdint>

#include "ops/arrays/elementary_functions.h"
#include "ops/mean_field/mean_field.h"

namespace crema::mean_field {

inline constexpr int kSpatialDimensions = 2, kBilateralDimensions = 2 + kColors;

// Where a pixel lies in the spatial filter.
CREMA_FORMULA void SpatialFeatures(const MeanField& problem, int64_t pixel, float* features) {
  features[0] = static_cast<float>(pixel % problem.width) / problem.theta_gamma;
  features[1] = static_cast<float>(pixel / problem.width) / problem.theta_gamma;
}

// Where a pixel of an image lies in the bilateral filter.
CREMA_FORMULA void BilateralFeatures(const MeanField& problem, const float* image, int64_t pixel, float* features) {
  features[0] = static_cast<float>(pixel % problem.width) / problem.theta_alpha;
  features[1] = static_cast<float>(pixel / problem.width) / problem.theta_alpha;
  const int64_t pixels = problem.height * problem.width;
  for (int color = 0; color < kColors; ++color) {
    features[2 + color] = image[color * pixels + pixel] / problem.theta_beta;
  }
}

// An element of minus the product of two classes x classes matrices: what the filtered probabilities are multiplied by.
CREMA_FORMULA float NegatedProduct(int64_t classes, const float* a, const float* b, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum -= static_cast<double>(a[row * classes + k]) * b[k * classes + column];
  return static_cast<float>(sum);
}

// The sums over pixels of what each filter's adjoint makes of the gradient, times the probabilities: classes x classes.
struct GradientSums {
  const double *spatial, *bilateral;
};

// An element of the gradient of a filter's weights.
CREMA_FORMULA float WeightGradient(int64_t classes, const float* compatibility, const double* sums, int64_t row,
                                   int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum -= compatibility[k * classes + row] * sums[k * classes + column];
  return static_cast<float>(sum);
}

// An element of the gradient of the compatibility.
CREMA_FORMULA float CompatibilityGradient(int64_t classes, const MeanFieldWeights& weights, const GradientSums& sums,
                                          int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) {
    sum -= sums.spatial[row * classes + k] * weights.spatial[column * classes + k] +
           sums.bilateral[row * classes + k] * weights.bilateral[column * classes + k];
  }
  return static_cast<float>(sum);
}

}  // namespace crema::mean_field

#endif  // CREMA_OPS_MEAN_FIELD_MEAN_FIELD_FORMULAS_H_
