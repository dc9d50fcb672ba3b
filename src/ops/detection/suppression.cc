#include "ops/detection/suppression.h"

#include "base/multiversion.h"

namespace crema::suppression {

int32_t KeepBest(const Suppression& s, uint64_t* ranks, int32_t count) {
  if (count <= s.top_k) return count;
  std::nth_element(ranks, ranks + s.top_k - 1, ranks + count, std::greater<>());
  return static_cast<int32_t>(s.top_k);
}

CREMA_MULTIVERSION bool IsCovered(const BoundingBox& box, const BoundingBox* by, int32_t count, float limit) {
  constexpr int32_t kTogether = 32;
  for (int32_t begin = 0; begin < count; begin += kTogether) {
    const int32_t end = std::min(count, begin + kTogether);
    int32_t covered = 0;
#pragma omp simd reduction(+ : covered)
    for (int32_t i = begin; i < end; ++i) covered += boxes::Overlap(box, by[i]) <= limit ? 0 : 1;
    if (covered > 0) return true;
  }
  return false;
}

}  // namespace crema::suppression
