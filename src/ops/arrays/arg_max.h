// The largest elements along an axis, and where they are.
#ifndef CREMA_OPS_ARRAYS_ARG_MAX_H_
#define CREMA_OPS_ARRAYS_ARG_MAX_H_

#include <cstdint>
#include <cstring>

#include "ops/arrays/functors.h"
#include "ops/losses/softmax.h"

namespace crema {

struct ArgMaxProblem {
  ClassAxis axis;  // of fewer than 2^32 - 1 classes, among which top_k are looked for at each position
  int64_t top_k = 1;
  bool indices = true;  // y gets their indices, and
  bool values = false;  // their values, behind the indices where both are wanted

  // What y holds along the axis.
  CREMA_HOST_DEVICE int64_t extent() const { return top_k * (indices && values ? 2 : 1); }
};

// In descending order; of equal ones the larger index first, as in Caffe. A NaN is larger than any number. The work
// grows with top_k times the classes.
void ArgMax(const ArgMaxProblem& problem, const float* x, float* y);

namespace formula {

// Greater for the element that comes first; above 0 and below 2^64 - 1.
CREMA_FORMULA uint64_t RankOf(float value, uint32_t index) {
  const float same_zero = value + 0.0f;  // -0 and 0 are equal
  uint32_t bits;
  std::memcpy(&bits, &same_zero, sizeof bits);
  const uint32_t ordered = (bits & 0x80000000u) ? ~bits : (bits | 0x80000000u);
  const uint64_t upper = value == value ? ordered : 0xffffffffu;
  return upper << 32 | index;
}
CREMA_FORMULA int64_t IndexOfRank(uint64_t rank) { return static_cast<int64_t>(rank & 0xffffffffu); }

}  // namespace formula

// Writes what y holds of the element of rank number k at a position. `x` and `y`: of its first class.
CREMA_HOST_DEVICE inline void WriteRanked(const ArgMaxProblem& problem, int64_t k, uint64_t rank, const float* x,
                                          float* y) {
  const int64_t inner = problem.axis.inner, index = formula::IndexOfRank(rank);
  if (problem.indices) y[k * inner] = static_cast<float>(index);
  if (problem.values) y[(problem.indices ? problem.top_k + k : k) * inner] = x[index * inner];
}

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_ARG_MAX_H_
