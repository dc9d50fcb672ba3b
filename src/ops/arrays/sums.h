// Sums over arrays in CPU memory, vectorised and threaded, accumulated in double in an order that depends on their
// length only.
#ifndef CREMA_OPS_ARRAYS_SUMS_H_
#define CREMA_OPS_ARRAYS_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace internal {

// Sixteen running sums, added up pairwise: the same order whatever the width of the machine's vectors.
inline constexpr int kSumLanes = 16;

template <typename Formula, typename... Inputs>
CREMA_MULTIVERSION double SumRange(const Formula& given, int64_t n, Inputs... inputs) {
  const Formula formula = given;
  double lanes[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
#pragma omp simd
    for (int lane = 0; lane < kSumLanes; ++lane) lanes[lane] += formula(inputs[i + lane]...);
  }
  for (; i < n; ++i) lanes[i % kSumLanes] += formula(inputs[i]...);
  for (int width = kSumLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace internal

// The sum of body(begin, end), a double, over blocks of n items, each of `width` elements: at most 64 blocks, split by
// n and width alone and added in order. body must not throw.
template <typename Body>
double SumBlocks(int64_t n, int64_t width, const Body& body) {
  constexpr int64_t kMaxBlocks = 64, kMinBlock = 4096, kUnit = internal::kSumLanes;
  constexpr int64_t kGrain = 32768;  // elements worth waking a thread for
  width = std::max<int64_t>(1, width);
  int64_t size = std::max({int64_t{1}, kMinBlock / width, (n + kMaxBlocks - 1) / kMaxBlocks});
  if (size > kUnit) size = (size + kUnit - 1) / kUnit * kUnit;
  const int64_t blocks = (n + size - 1) / size;
  double partial[kMaxBlocks];
  ParallelFor(blocks, std::max<int64_t>(1, kGrain / (size * width)), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) partial[b] = body(b * size, std::min(n, (b + 1) * size));
  });
  double sum = 0;
  for (int64_t b = 0; b < blocks; ++b) sum += partial[b];
  return sum;
}

// The sum of formula(inputs[i]...) over i in [0, n). Inputs: pointers to n floats each.
template <typename Formula, typename... Inputs>
double SumOf(const Formula& formula, int64_t n, const Inputs*... inputs) {
  return SumBlocks(n, 1, [&](int64_t begin, int64_t end) {
    return internal::SumRange<Formula, const Inputs*...>(formula, end - begin, (inputs + begin)...);
  });
}

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_SUMS_H_
