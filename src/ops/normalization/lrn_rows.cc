#include "ops/normalization/lrn_rows.h"

#include "base/multiversion.h"
#include "ops/normalization/lrn_formulas.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void ThreeQuarters(const float* scale, int64_t n, float* power) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) power[i] = formula::MinusThreeQuarters()(scale[i]);
}

CREMA_MULTIVERSION void Half(const float* scale, int64_t n, float* power) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) power[i] = formula::MinusHalf()(scale[i]);
}

CREMA_MULTIVERSION void One(const float* scale, int64_t n, float* power) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) power[i] = 1.0f / scale[i];
}

CREMA_MULTIVERSION void Any(const float* scale, float exponent, int64_t n, float* power) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) power[i] = formula::Power(scale[i], exponent);
}

}  // namespace

void NegativePower(const float* scale, float beta, int64_t n, float* power) {
  if (beta == 0.75f) return ThreeQuarters(scale, n, power);
  if (beta == 0.5f) return Half(scale, n, power);
  if (beta == 1.0f) return One(scale, n, power);
  Any(scale, -beta, n, power);
}

CREMA_MULTIVERSION void WidenRow(const BFloat16* from, int64_t n, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

CREMA_MULTIVERSION void RoundRow(const float* from, int64_t n, BFloat16* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

CREMA_MULTIVERSION void AddSquares(const float* x, int64_t n, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i] * x[i];
}

CREMA_MULTIVERSION void AddRow(const float* row, int64_t n, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += row[i];
}

CREMA_MULTIVERSION void ScaleFromSquares(float k, float weight, int64_t n, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] = k + weight * sum[i];
}

CREMA_MULTIVERSION void MultiplyRows(const float* a, const float* b, int64_t n, float* product) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) product[i] = a[i] * b[i];
}

CREMA_MULTIVERSION void GradientTerms(const float* dy, const float* power, const float* scale, const float* x,
                                      int64_t n, float* direct, float* ratio) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const formula::LrnTerms terms(dy[i], power[i], scale[i], x[i]);
    direct[i] = terms.direct;
    ratio[i] = terms.ratio;
  }
}

CREMA_MULTIVERSION void SubtractProducts(float weight, const float* x, const float* sum, int64_t n, float* gradient) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) gradient[i] = formula::LrnGradient{weight}(gradient[i], x[i], sum[i]);
}

}  // namespace crema
