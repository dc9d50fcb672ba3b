// Elements of images that lie between others, many at a time, plain f32 in CPU memory.
#ifndef CREMA_OPS_SAMPLING_BILINEAR_H_
#define CREMA_OPS_SAMPLING_BILINEAR_H_

#include <cstdint>

#include "base/multiversion.h"
#include "ops/sampling/bilinear_formulas.h"

namespace crema::bilinear {

inline constexpr int32_t kElements = 1024;  // of a result that are worked on at a time

// The shares of some positions on one axis.
struct AxisShares {
  float low[kElements], high[kElements], low_in[kElements], high_in[kElements];

  CREMA_INLINE void Set(int32_t k, const Shares& shares) {
    low[k] = shares.low;
    high[k] = shares.high;
    low_in[k] = shares.low_in;
    high_in[k] = shares.high_in;
  }
  CREMA_INLINE Shares At(int32_t k) const { return {low[k], high[k], low_in[k], high_in[k]}; }
};

// Where some elements of a plane of the result come from, in any plane of the images.
struct Sources {
  int32_t count = 0;
  int32_t upper_left[kElements], upper_right[kElements], lower_left[kElements], lower_right[kElements];
  AxisShares down, across;

  // `width`: of the images.
  CREMA_INLINE void Set(int32_t k, const Point& rows, const Point& columns, int32_t width) {
    upper_left[k] = rows.low * width + columns.low;
    upper_right[k] = rows.low * width + columns.high;
    lower_left[k] = rows.high * width + columns.low;
    lower_right[k] = rows.high * width + columns.high;
    down.Set(k, rows.shares);
    across.Set(k, columns.shares);
  }
  CREMA_INLINE Corners CornersOf(const float* x, int32_t k) const {
    return {x[upper_left[k]], x[upper_right[k]], x[lower_left[k]], x[lower_right[k]]};
  }
};

// Some planes of images, or of a result at `at`, `stride` elements apart.
template <typename T>
struct Planes {
  T* first;
  int64_t stride;

  CREMA_INLINE T* operator[](int64_t plane) const { return first + plane * stride; }
};

// The elements, of each plane of x.
void Sample(const Sources& at, int64_t planes, Planes<const float> x, Planes<float> y);
// Adds what the elements' gradients give back to the planes dx.
void Spread(const Sources& at, int64_t planes, Planes<const float> dy, Planes<float> dx);

// Gradients by where elements come from, in pixels.
struct Slopes {
  float row[kElements], column[kElements];
};

// Adds those of elements of the planes x with gradients dy, one plane after the other.
void AddSlopes(const Sources& at, int64_t planes, Planes<const float> x, Planes<const float> dy, Slopes* slopes);
// Adds the products of the elements of the planes x and dy, likewise.
void AddProducts(const Sources& at, int64_t planes, Planes<const float> x, Planes<const float> dy, float* sums);

}  // namespace crema::bilinear

#endif  // CREMA_OPS_SAMPLING_BILINEAR_H_
