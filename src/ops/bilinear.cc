#include "ops/bilinear.h"

namespace crema::bilinear {

CREMA_MULTIVERSION void Sample(const Sources& at, const float* x, float* y) {
#pragma omp simd
  for (int32_t k = 0; k < at.count; ++k) y[k] = at.CornersOf(x, k).Value(at.down.At(k), at.across.At(k));
}

void Spread(const Sources& at, const float* dy, float* dx) {
  for (int32_t k = 0; k < at.count; ++k) {
    const Shares down = at.down.At(k), across = at.across.At(k);
    const float above = down.low * dy[k], below = down.high * dy[k];
    dx[at.upper_left[k]] += above * across.low;
    dx[at.upper_right[k]] += above * across.high;
    dx[at.lower_left[k]] += below * across.low;
    dx[at.lower_right[k]] += below * across.high;
  }
}

CREMA_MULTIVERSION void AddSlopes(const Sources& at, const float* x, const float* dy, Slopes* slopes) {
#pragma omp simd
  for (int32_t k = 0; k < at.count; ++k) {
    const Corners corners = at.CornersOf(x, k);
    const Shares down = at.down.At(k), across = at.across.At(k);
    slopes->row[k] += dy[k] * corners.SlopeDown(down, across);
    slopes->column[k] += dy[k] * corners.SlopeAcross(down, across);
  }
}

CREMA_MULTIVERSION void AddProducts(const Sources& at, const float* x, const float* dy, float* sums) {
#pragma omp simd
  for (int32_t k = 0; k < at.count; ++k) sums[k] += dy[k] * at.CornersOf(x, k).Value(at.down.At(k), at.across.At(k));
}

}  // namespace crema::bilinear
