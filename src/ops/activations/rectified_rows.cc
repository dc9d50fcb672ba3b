#include "ops/activations/rectified_rows.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 32768;  // elements worth waking a thread for

CREMA_MULTIVERSION void Rectify(int64_t n, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

// The bits of bf16 numbers order like integers: below 0 the sign is set, and NaNs lie behind the infinities.
constexpr uint16_t kInfinity = 0x7F80, kMinusInfinity = 0xFF80, kSign = 0x8000;

CREMA_MULTIVERSION void RectifyBits(int64_t n, const uint16_t* x, uint16_t* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] >= kSign && x[i] <= kMinusInfinity ? 0 : x[i];
}

CREMA_MULTIVERSION void Mask(int64_t n, const float* gradient, const float* rectified, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = rectified[i] > 0 ? gradient[i] : 0;
}

CREMA_MULTIVERSION void MaskBits(int64_t n, const uint16_t* gradient, const uint16_t* rectified, uint16_t* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    to[i] = rectified[i] != 0 && rectified[i] <= kInfinity ? gradient[i] : uint16_t{0};
  }
}

static_assert(sizeof(BFloat16) == sizeof(uint16_t));
const uint16_t* Bits(const BFloat16* numbers) { return reinterpret_cast<const uint16_t*>(numbers); }
uint16_t* Bits(BFloat16* numbers) { return reinterpret_cast<uint16_t*>(numbers); }

void Rectify(int64_t n, const BFloat16* x, BFloat16* y) { RectifyBits(n, Bits(x), Bits(y)); }
void Mask(int64_t n, const BFloat16* gradient, const BFloat16* rectified, BFloat16* to) {
  MaskBits(n, Bits(gradient), Bits(rectified), Bits(to));
}

template <typename Body>
void ForEachRow(int64_t rows, int64_t width, const Body& body) {
  if (width == 0) return;
  ParallelFor(rows, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace

template <typename Number>
void CopyRectified(int64_t rows, int64_t width, Rows<const Number> from, Rows<Number> to) {
  ForEachRow(rows, width,
             [&](int64_t row) { Rectify(width, from.first + row * from.stride, to.first + row * to.stride); });
}

template <typename Number>
void CopyRectifiedGradient(int64_t rows, int64_t width, const Number* gradient, const Number* rectified, int64_t stride,
                           Rows<Number> to) {
  ForEachRow(rows, width, [&](int64_t row) {
    Mask(width, gradient + row * stride, rectified + row * stride, to.first + row * to.stride);
  });
}

template void CopyRectified(int64_t, int64_t, Rows<const float>, Rows<float>);
template void CopyRectified(int64_t, int64_t, Rows<const BFloat16>, Rows<BFloat16>);
template void CopyRectifiedGradient(int64_t, int64_t, const float*, const float*, int64_t, Rows<float>);
template void CopyRectifiedGradient(int64_t, int64_t, const BFloat16*, const BFloat16*, int64_t, Rows<BFloat16>);

}  // namespace crema
