#include "ops/normalization/channel_peaks.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/elementary_functions.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 8192;  // elements worth waking a thread for
constexpr int64_t kTile = 128;    // places that are worked on side by side

// Places side by side, the classes `stride` elements apart.
CREMA_MULTIVERSION void ExpOfPlaces(int64_t classes, int64_t stride, int64_t count, const float* x, float* y) {
  float largest[kTile];
  std::copy_n(x, count, largest);
  for (int64_t c = 1; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) largest[i] = x[c * stride + i] > largest[i] ? x[c * stride + i] : largest[i];
  }
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[c * stride + i] = formula::Exp(x[c * stride + i] - largest[i]);
  }
}

}  // namespace

void ExpBelowPeak(const ClassAxis& axis, const float* x, float* y) {
  const int64_t tiles = (axis.inner + kTile - 1) / kTile;
  const int64_t work = axis.classes * std::min(axis.inner, kTile);
  ParallelFor(axis.outer * tiles, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t first = n % tiles * kTile, at = n / tiles * axis.classes * axis.inner + first;
      ExpOfPlaces(axis.classes, axis.inner, std::min(kTile, axis.inner - first), x + at, y + at);
    }
  });
}

}  // namespace crema
