#include "ops/maximum.h"

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for

CREMA_MULTIVERSION void OfTwoRange(int64_t n, const float* a, const float* b, float* y, uint8_t* from) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float left = a[i], right = b[i];
    from[i] = left > right ? 0 : 1;
    y[i] = left > right ? left : right;
  }
}

CREMA_MULTIVERSION void WithRange(int64_t n, const float* x, uint8_t index, float* y, uint8_t* from) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float value = x[i], best = y[i];
    const uint8_t source = from[i];
    from[i] = value > best ? index : source;
    y[i] = value > best ? value : best;
  }
}

CREMA_MULTIVERSION void BackwardRange(int64_t n, const float* dy, const uint8_t* from, uint8_t index, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = from[i] == index ? dy[i] : 0.0f;
}

}  // namespace

void MaximumOfTwo(int64_t n, const float* a, const float* b, float* y, uint8_t* from) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    OfTwoRange(end - begin, a + begin, b + begin, y + begin, from + begin);
  });
}

void MaximumWith(int64_t n, const float* x, uint8_t index, float* y, uint8_t* from) {
  ParallelFor(n, kGrain,
              [=](int64_t begin, int64_t end) { WithRange(end - begin, x + begin, index, y + begin, from + begin); });
}

void MaximumBackward(int64_t n, const float* dy, const uint8_t* from, uint8_t index, float* dx) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    BackwardRange(end - begin, dy + begin, from + begin, index, dx + begin);
  });
}

}  // namespace crema
