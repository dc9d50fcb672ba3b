// The best of many, found by the threads of one block without sorting.
#ifndef CREMA_CUDA_DETECTION_RANK_CUT_H_
#define CREMA_CUDA_DETECTION_RANK_CUT_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace crema::cuda {

// The lowest rank among the `wanted` highest of those above 0, of which there are as many or more, or one between it
// and the next: found digit by digit from the highest. All threads of the block must call, and get the same.
template <typename RankOf>
__device__ uint64_t FindCut(int64_t count, const RankOf& rank_of, int wanted) {
  constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;
  __shared__ int counts[kDigits];
  __shared__ int digit, above;
  uint64_t cut = 0;
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (int i = threadIdx.x; i < kDigits; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      const uint64_t rank = rank_of(i);
      const bool same = shift + kDigitBits == 64 || (rank ^ cut) >> (shift + kDigitBits) == 0;
      // Whole numbers are the same in any order.
      if (rank != 0 && same) atomicAdd(&counts[rank >> shift & (kDigits - 1)], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      digit = kDigits - 1;
      above = 0;
      while (above + counts[digit] < wanted) above += counts[digit--];
    }
    __syncthreads();
    wanted -= above;
    cut |= static_cast<uint64_t>(digit) << shift;
    const bool whole = counts[digit] == wanted;
    __syncthreads();  // before the counts are cleared
    if (whole) break;
  }
  return cut;
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DETECTION_RANK_CUT_H_
