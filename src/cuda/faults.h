// Values of a pass that cannot be used, as the host is told of them.
#ifndef CREMA_CUDA_FAULTS_H_
#define CREMA_CUDA_FAULTS_H_

#include <limits>
#include <type_traits>

#include "cuda/gpu.h"
#include "cuda/reduce.h"

namespace crema::cuda {

inline constexpr unsigned kFaultThreads = 1024;

namespace internal {

template <typename IsBad>
__device__ bool AskWhetherBad(const IsBad& is_bad, float value, int64_t position) {
  if constexpr (std::is_invocable_v<const IsBad&, float, int64_t>) {
    return is_bad(value, position);
  } else {
    return is_bad(value);
  }
}

template <typename IsBad>
__device__ int64_t PositionToTell(const IsBad& is_bad, int64_t position) {
  if constexpr (requires { is_bad.PositionToTell(position); }) {
    return is_bad.PositionToTell(position);
  } else {
    return position;
  }
}

// One block, so that the first one is known without a second kernel.
template <typename IsBad>
__global__ void __launch_bounds__(kFaultThreads)
    ReportFirstKernel(PassState* state, int unit, int64_t n, const float* values, IsBad is_bad) {
  if (state->result.faulty_unit >= 0) return;  // the same for all threads: written behind the barriers below only
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t first = kNone;
  constexpr int kAtOnce = 8;  // loads that are on their way at a time
  for (int64_t begin = threadIdx.x; begin < n && first == kNone; begin += kAtOnce * blockDim.x) {
    float some[kAtOnce];
    CREMA_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t i = begin + k * static_cast<int64_t>(blockDim.x);
      some[k] = values[i < n ? i : begin];
    }
    CREMA_UNROLL
    for (int k = kAtOnce - 1; k >= 0; --k) {
      const int64_t i = begin + k * static_cast<int64_t>(blockDim.x);
      if (i < n && AskWhetherBad(is_bad, some[k], i)) first = i;
    }
  }
  first = ReduceBlock(first, kNone, Smaller());
  if (threadIdx.x != 0 || first == kNone) return;
  state->result.faulty_unit = unit;
  state->result.value = values[first];
  state->result.position = PositionToTell(is_bad, first);
}

}  // namespace internal

// Remembers the first of n values for which is_bad(value) or is_bad(value, position), a __device__ function object, in
// the result of the pass, unless that holds a fault already. Its position is what is_bad.PositionToTell(position) makes
// of it where there is such a function.
template <typename IsBad>
void ReportFirst(const Queue& queue, PassState* state, int unit, int64_t n, const float* values, IsBad is_bad) {
  if (n <= 0) return;
  Launch(queue, 1, kFaultThreads, internal::ReportFirstKernel<IsBad>, state, unit, n, values, is_bad);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_FAULTS_H_
