// The inner loops of LRN over rows of n floats, on the calling thread. Rows may be the same one, but must not overlap
// otherwise.
#ifndef CREMA_OPS_NORMALIZATION_LRN_ROWS_H_
#define CREMA_OPS_NORMALIZATION_LRN_ROWS_H_

#include <cstdint>

#include "base/bfloat16.h"

namespace crema {

// to = from
void WidenRow(const BFloat16* from, int64_t n, float* to);
// to = from, rounded
void RoundRow(const float* from, int64_t n, BFloat16* to);
// sum += x^2
void AddSquares(const float* x, int64_t n, float* sum);
// sum += row
void AddRow(const float* row, int64_t n, float* sum);
// sum = k + weight * sum
void ScaleFromSquares(float k, float weight, int64_t n, float* sum);
// power = scale^-beta; scale > 0
void NegativePower(const float* scale, float beta, int64_t n, float* power);
// product = a * b
void MultiplyRows(const float* a, const float* b, int64_t n, float* product);
// direct = dy * power, ratio = dy * power * x / scale
void GradientTerms(const float* dy, const float* power, const float* scale, const float* x, int64_t n, float* direct,
                   float* ratio);
// gradient -= weight * x * sum
void SubtractProducts(float weight, const float* x, const float* sum, int64_t n, float* gradient);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_LRN_ROWS_H_
