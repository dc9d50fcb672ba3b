#include "ops/sampling/bilinear.h"

#include "base/independent_loop.h"

namespace crema::bilinear {

namespace {

// Four loads for each element are what takes the time, and vectors do not shorten that: elements are taken one by one,
// but with some planes at a time, which share what is known of the sources. None of the loops is `omp simd`, which has
// GCC keep structs such as Shares in memory.
constexpr int kTogether = 4;

template <int kPlanes>
CREMA_MULTIVERSION void SamplePlanes(const Sources& at, const Planes<const float>& x, const Planes<float>& y) {
  CREMA_INDEPENDENT
  for (int32_t k = 0; k < at.count; ++k) {
    const Shares down = at.down.At(k), across = at.across.At(k);
    for (int i = 0; i < kPlanes; ++i) y[i][k] = at.CornersOf(x[i], k).Value(down, across);
  }
}

// What has no share gets nothing of a gradient, which may be infinite. Most have one.
template <bool kAllShare>
CREMA_INLINE float Part(float share, float gradient) {
  return !kAllShare && share == 0.0f ? 0.0f : share * gradient;
}

template <int kPlanes, bool kAllShare>
CREMA_INLINE void SpreadElement(const Sources& at, int32_t k, const Shares& down, const Shares& across,
                                const Planes<const float>& dy, const Planes<float>& dx) {
  const int32_t upper_left = at.upper_left[k], upper_right = at.upper_right[k];
  const int32_t lower_left = at.lower_left[k], lower_right = at.lower_right[k];
  for (int i = 0; i < kPlanes; ++i) {
    const float above = Part<kAllShare>(down.low, dy[i][k]), below = Part<kAllShare>(down.high, dy[i][k]);
    float* const to = dx[i];
    to[upper_left] += Part<kAllShare>(across.low, above);
    to[upper_right] += Part<kAllShare>(across.high, above);
    to[lower_left] += Part<kAllShare>(across.low, below);
    to[lower_right] += Part<kAllShare>(across.high, below);
  }
}

template <int kPlanes>
void SpreadPlanes(const Sources& at, const Planes<const float>& dy, const Planes<float>& dx) {
  for (int32_t k = 0; k < at.count; ++k) {
    const Shares down = at.down.At(k), across = at.across.At(k);
    if (down.low * down.high * across.low * across.high != 0.0f) {
      SpreadElement<kPlanes, true>(at, k, down, across, dy, dx);
    } else {
      SpreadElement<kPlanes, false>(at, k, down, across, dy, dx);
    }
  }
}

template <int kPlanes>
CREMA_MULTIVERSION void AddSlopesOfPlanes(const Sources& at, const Planes<const float>& x,
                                          const Planes<const float>& dy, Slopes* slopes) {
  CREMA_INDEPENDENT
  for (int32_t k = 0; k < at.count; ++k) {
    const Shares down = at.down.At(k), across = at.across.At(k);
    float row = slopes->row[k], column = slopes->column[k];
    for (int i = 0; i < kPlanes; ++i) {
      const Corners corners = at.CornersOf(x[i], k);
      row += dy[i][k] * corners.SlopeDown(down, across);
      column += dy[i][k] * corners.SlopeAcross(down, across);
    }
    slopes->row[k] = row;
    slopes->column[k] = column;
  }
}

template <int kPlanes>
CREMA_MULTIVERSION void AddProductsOfPlanes(const Sources& at, const Planes<const float>& x,
                                            const Planes<const float>& dy, float* sums) {
  CREMA_INDEPENDENT
  for (int32_t k = 0; k < at.count; ++k) {
    const Shares down = at.down.At(k), across = at.across.At(k);
    float sum = sums[k];
    for (int i = 0; i < kPlanes; ++i) sum += dy[i][k] * at.CornersOf(x[i], k).Value(down, across);
    sums[k] = sum;
  }
}

// Calls some(first) for kTogether planes each, and one(plane) for those that are left.
template <typename Some, typename One>
void ForPlanes(int64_t planes, const Some& some, const One& one) {
  int64_t plane = 0;
  for (; plane + kTogether <= planes; plane += kTogether) some(plane);
  for (; plane < planes; ++plane) one(plane);
}

template <typename T>
Planes<T> From(const Planes<T>& planes, int64_t first) {
  return {planes[first], planes.stride};
}

}  // namespace

void Sample(const Sources& at, int64_t planes, Planes<const float> x, Planes<float> y) {
  ForPlanes(
      planes, [&](int64_t i) { SamplePlanes<kTogether>(at, From(x, i), From(y, i)); },
      [&](int64_t i) { SamplePlanes<1>(at, From(x, i), From(y, i)); });
}

void Spread(const Sources& at, int64_t planes, Planes<const float> dy, Planes<float> dx) {
  ForPlanes(
      planes, [&](int64_t i) { SpreadPlanes<kTogether>(at, From(dy, i), From(dx, i)); },
      [&](int64_t i) { SpreadPlanes<1>(at, From(dy, i), From(dx, i)); });
}

void AddSlopes(const Sources& at, int64_t planes, Planes<const float> x, Planes<const float> dy, Slopes* slopes) {
  ForPlanes(
      planes, [&](int64_t i) { AddSlopesOfPlanes<kTogether>(at, From(x, i), From(dy, i), slopes); },
      [&](int64_t i) { AddSlopesOfPlanes<1>(at, From(x, i), From(dy, i), slopes); });
}

void AddProducts(const Sources& at, int64_t planes, Planes<const float> x, Planes<const float> dy, float* sums) {
  ForPlanes(
      planes, [&](int64_t i) { AddProductsOfPlanes<kTogether>(at, From(x, i), From(dy, i), sums); },
      [&](int64_t i) { AddProductsOfPlanes<1>(at, From(x, i), From(dy, i), sums); });
}

}  // namespace crema::bilinear
