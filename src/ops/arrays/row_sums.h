// Sums over rows of numbers, and what they make of the row: each row while it is in a core's cache, long ones cut into
// parts that threads share out.
#ifndef CREMA_OPS_ARRAYS_ROW_SUMS_H_
#define CREMA_OPS_ARRAYS_ROW_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

// Adds up term(i, first, second) for i in [0, n) in sixteen lanes, in the same order whatever the width of the
// machine's vectors. For functions that are compiled for several instruction sets; `term` must be inlined.
template <typename Sums, typename Term>
CREMA_INLINE Sums SumInLanes(int64_t n, const Term& term) {
  constexpr int kLanes = 16;
  double first[kLanes] = {}, second[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) term(i + lane, first[lane], second[lane]);
  }
  for (; i < n; ++i) term(i, first[i % kLanes], second[i % kLanes]);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) {
      first[lane] += first[lane + width];
      second[lane] += second[lane + width];
    }
  }
  return {first[0], second[0]};
}

// For each row: total = the sum of sum(row, begin, end) over its parts, then map(row, total, begin, end) for each part.
// The cut depends on the extents alone. Sums has first, second and an origin, which is that of the first part.
template <typename Sums, typename Sum, typename Map>
void OverRows(int64_t rows, int64_t width, const Sum& sum, const Map& map) {
  constexpr int64_t kInCache = 1 << 16, kLeastPart = 1 << 14;  // numbers
  constexpr int64_t kGrain = 8192;                             // numbers worth waking a thread for
  constexpr int64_t kParts = 64;
  if (rows * width == 0) return;
  if (width <= kInCache) {
    ParallelFor(rows, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) map(row, sum(row, 0, width), 0, width);
    });
    return;
  }
  const int64_t size = std::max(kLeastPart, ((width + kParts - 1) / kParts + 63) / 64 * 64);
  const int64_t parts = (width + size - 1) / size;
  const auto for_parts = [&](const auto& body) {
    ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) body(part, part * size, std::min(width, (part + 1) * size));
    });
  };
  for (int64_t row = 0; row < rows; ++row) {
    Sums of_part[kParts];
    for_parts([&](int64_t part, int64_t begin, int64_t end) { of_part[part] = sum(row, begin, end); });
    Sums total = of_part[0];
    for (int64_t part = 1; part < parts; ++part) {
      total.first += of_part[part].first;
      total.second += of_part[part].second;
    }
    for_parts([&](int64_t, int64_t begin, int64_t end) { map(row, total, begin, end); });
  }
}

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_ROW_SUMS_H_
