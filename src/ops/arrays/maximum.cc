#include "ops/arrays/maximum.h"

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for

template <typename Number>
CREMA_MULTIVERSION void OfTwoRange(int64_t n, const Number* a, const Number* b, Number* y, uint8_t* from) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const formula::Chosen chosen = formula::MaximumOfTwo()(a[i], b[i]);
    from[i] = chosen.from;
    y[i] = chosen.value;
  }
}

template <typename Number>
CREMA_MULTIVERSION void WithRange(int64_t n, const Number* x, uint8_t index, Number* y, uint8_t* from) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const formula::Chosen chosen = formula::MaximumWith{index}(x[i], {y[i], from[i]});
    from[i] = chosen.from;
    y[i] = chosen.value;
  }
}

template <typename Number>
CREMA_MULTIVERSION void BackwardRange(int64_t n, const Number* dy, const uint8_t* from, uint8_t index, Number* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = formula::MaximumGradient{index}(dy[i], from[i]);
}

}  // namespace

template <typename Number>
void MaximumOfTwo(int64_t n, const Number* a, const Number* b, Number* y, uint8_t* from) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    OfTwoRange(end - begin, a + begin, b + begin, y + begin, from + begin);
  });
}

template <typename Number>
void MaximumWith(int64_t n, const Number* x, uint8_t index, Number* y, uint8_t* from) {
  ParallelFor(n, kGrain,
              [=](int64_t begin, int64_t end) { WithRange(end - begin, x + begin, index, y + begin, from + begin); });
}

template <typename Number>
void MaximumBackward(int64_t n, const Number* dy, const uint8_t* from, uint8_t index, Number* dx) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) {
    BackwardRange(end - begin, dy + begin, from + begin, index, dx + begin);
  });
}

template void MaximumOfTwo(int64_t, const float*, const float*, float*, uint8_t*);
template void MaximumOfTwo(int64_t, const BFloat16*, const BFloat16*, BFloat16*, uint8_t*);
template void MaximumWith(int64_t, const float*, uint8_t, float*, uint8_t*);
template void MaximumWith(int64_t, const BFloat16*, uint8_t, BFloat16*, uint8_t*);
template void MaximumBackward(int64_t, const float*, const uint8_t*, uint8_t, float*);
template void MaximumBackward(int64_t, const BFloat16*, const uint8_t*, uint8_t, BFloat16*);

}  // namespace crema
