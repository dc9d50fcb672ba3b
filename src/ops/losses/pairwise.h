// All pairs of the vectors of a batch, plain f32 in CPU memory.
#ifndef CREMA_OPS_LOSSES_PAIRWISE_H_
#define CREMA_OPS_LOSSES_PAIRWISE_H_

#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// Vectors of `width` numbers: those of one array and behind them those of a second one, of which there may be none.
template <typename T>
struct VectorPair {
  int64_t first_count = 0, second_count = 0, width = 1;
  T* first = nullptr;
  T* second = nullptr;

  CREMA_HOST_DEVICE int64_t count() const { return first_count + second_count; }
  CREMA_HOST_DEVICE T* At(int64_t i) const {
    return i < first_count ? first + i * width : second + (i - first_count) * width;
  }
};

// distance[i][j], count x count: the squares of their distances. Threaded.
void SquaredDistances(const VectorPair<const float>& x, float* distance);
// y[i] = the sum over j of weight[i][j] * (x[i] - x[j]). An array of y that is null is left out. Threaded; sums are the
// same on any number of threads.
void SumWeightedDifferences(const VectorPair<const float>& x, const float* weight, const VectorPair<float>& y);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_PAIRWISE_H_
