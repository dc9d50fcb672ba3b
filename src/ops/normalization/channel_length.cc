#include "ops/normalization/channel_length.h"

#include <algorithm>
#include <cmath>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int64_t kBlock = 256;    // places whose sums are kept at once

// Places side by side, the classes `stride` elements apart.
CREMA_MULTIVERSION void LengthsOfPlaces(int64_t classes, int64_t stride, int64_t count, const float* x, float* y) {
  float sums[kBlock] = {};
  for (int64_t c = 0; c < classes; ++c) {
    const float* const of_class = x + c * stride;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) sums[i] += of_class[i] * of_class[i];
  }
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = std::sqrt(sums[i]);
}

CREMA_MULTIVERSION void LengthsOfRows(int64_t classes, int64_t rows, const float* x, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += classes) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < classes; ++c) sum += x[c] * x[c];
    y[r] = std::sqrt(sum);
  }
}

CREMA_INLINE float Slope(float dy, float y) { return y == 0.0f ? 0.0f : dy / y; }

CREMA_MULTIVERSION void SlopesOfPlaces(int64_t classes, int64_t stride, int64_t count, const float* x, const float* y,
                                       const float* dy, float* dx) {
  float slopes[kBlock];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) slopes[i] = Slope(dy[i], y[i]);
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) dx[c * stride + i] = slopes[i] * x[c * stride + i];
  }
}

CREMA_MULTIVERSION void SlopesOfRows(int64_t classes, int64_t rows, const float* x, const float* y, const float* dy,
                                     float* dx) {
  for (int64_t r = 0; r < rows; ++r) {
    const float slope = Slope(dy[r], y[r]);
#pragma omp simd
    for (int64_t c = r * classes; c < (r + 1) * classes; ++c) dx[c] = slope * x[c];
  }
}

// Calls rows(first, count) for places whose classes lie side by side, else places(first, count) for some of one
// `outer`; `first` counts places.
template <typename Rows, typename Places>
void OverPlaces(const ClassAxis& axis, const Rows& rows, const Places& places) {
  if (axis.inner == 1) {
    ParallelFor(axis.outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, axis.classes)),
                [&](int64_t begin, int64_t end) { rows(begin, end - begin); });
    return;
  }
  const int64_t blocks = (axis.inner + kBlock - 1) / kBlock;
  ParallelFor(axis.outer * blocks, std::max<int64_t>(1, kGrain / (kBlock * axis.classes + 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) {
                  const int64_t first = n % blocks * kBlock;
                  places(n / blocks * axis.inner + first, std::min(kBlock, axis.inner - first));
                }
              });
}

// Of a place, in a tensor of all classes.
int64_t OffsetOf(const ClassAxis& axis, int64_t place) {
  return place / axis.inner * axis.classes * axis.inner + place % axis.inner;
}

}  // namespace

void ChannelLengthForward(const ClassAxis& axis, const float* x, float* y) {
  OverPlaces(
      axis,
      [&](int64_t first, int64_t count) { LengthsOfRows(axis.classes, count, x + first * axis.classes, y + first); },
      [&](int64_t first, int64_t count) {
        LengthsOfPlaces(axis.classes, axis.inner, count, x + OffsetOf(axis, first), y + first);
      });
}

void ChannelLengthBackward(const ClassAxis& axis, const float* x, const float* y, const float* dy, float* dx) {
  OverPlaces(
      axis,
      [&](int64_t first, int64_t count) {
        const int64_t at = first * axis.classes;
        SlopesOfRows(axis.classes, count, x + at, y + first, dy + first, dx + at);
      },
      [&](int64_t first, int64_t count) {
        const int64_t at = OffsetOf(axis, first);
        SlopesOfPlaces(axis.classes, axis.inner, count, x + at, y + first, dy + first, dx + at);
      });
}

}  // namespace crema
