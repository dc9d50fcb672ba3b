#include "ops/arrays/vector_math.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/sums.h"

namespace crema {

namespace {

// Elements a thread should get at least: below this, waking it costs more than it saves.
constexpr int64_t kGrain = 32768;

CREMA_MULTIVERSION void FillRange(int64_t n, float value, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = value;
}

CREMA_MULTIVERSION void AxpyRange(int64_t n, float a, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

CREMA_MULTIVERSION void ScaleRange(int64_t n, float a, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a * x[i];
}

CREMA_MULTIVERSION void AddRange(int64_t n, const float* a, const float* b, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

struct Identity {
  CREMA_INLINE double operator()(float x) const { return x; }
};
struct Magnitude {
  CREMA_INLINE double operator()(float x) const { return __builtin_fabsf(x); }
};
struct Product {
  CREMA_INLINE double operator()(float x, float y) const { return static_cast<double>(x) * static_cast<double>(y); }
};

CREMA_MULTIVERSION uint32_t NonFiniteRange(int64_t n, const float* x) {
  uint32_t found = 0;
#pragma omp simd reduction(| : found)
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    found |= static_cast<uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return found;
}

}  // namespace

void Fill(int64_t n, float value, float* y) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) { FillRange(end - begin, value, y + begin); });
}

void Copy(int64_t n, const float* x, float* y) {
  if (x == y) return;
  ParallelFor(n, kGrain,
              [=](int64_t begin, int64_t end) { std::memcpy(y + begin, x + begin, (end - begin) * sizeof(float)); });
}

void CopyRows(int64_t rows, int64_t width, const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  constexpr int64_t kBytes = sizeof(float);
  CopyByteRows(rows, width * kBytes, x, x_stride * kBytes, y, y_stride * kBytes);
}

void CopyByteRows(int64_t rows, int64_t width, const void* x, int64_t x_stride, void* y, int64_t y_stride) {
  constexpr int64_t kBytes = kGrain * sizeof(float);
  const std::byte* from = static_cast<const std::byte*>(x);
  std::byte* to = static_cast<std::byte*>(y);
  ParallelFor(rows, std::max<int64_t>(1, kBytes / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) std::memcpy(to + r * y_stride, from + r * x_stride, width);
  });
}

void Axpy(int64_t n, float a, const float* x, float* y) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) { AxpyRange(end - begin, a, x + begin, y + begin); });
}

void Scale(int64_t n, float a, float* y) { Scale(n, a, y, y); }

void Scale(int64_t n, float a, const float* x, float* y) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) { ScaleRange(end - begin, a, x + begin, y + begin); });
}

void Add(int64_t n, const float* a, const float* b, float* y) {
  ParallelFor(n, kGrain, [=](int64_t begin, int64_t end) { AddRange(end - begin, a + begin, b + begin, y + begin); });
}

double Sum(int64_t n, const float* x) { return SumOf(Identity(), n, x); }
double AbsSum(int64_t n, const float* x) { return SumOf(Magnitude(), n, x); }
double SumOfSquares(int64_t n, const float* x) { return SumOf(Product(), n, x, x); }
double Dot(int64_t n, const float* x, const float* y) { return SumOf(Product(), n, x, y); }

bool HasNonFinite(int64_t n, const float* x) {
  std::atomic<bool> found = false;
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !found.load(std::memory_order_relaxed); i += kGrain) {
      if (NonFiniteRange(std::min(kGrain, end - i), x + i)) found.store(true, std::memory_order_relaxed);
    }
  });
  return found;
}

namespace {

CREMA_MULTIVERSION void AddRowTo(int64_t n, const float* row, float* sums) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sums[i] += row[i];
}

}  // namespace

void SumRows(int64_t rows, int64_t columns, const float* matrix, float* sums) {
  ParallelFor(columns, std::max<int64_t>(16, 65536 / std::max<int64_t>(rows, 1)), [&](int64_t begin, int64_t end) {
    std::fill(sums + begin, sums + end, 0.0f);
    for (int64_t row = 0; row < rows; ++row) AddRowTo(end - begin, matrix + row * columns + begin, sums + begin);
  });
}

}  // namespace crema
