// Values of a pass that cannot be used, as the host is told of them.
#ifndef CREMA_CUDA_DEVICE_FAULTS_H_
#define CREMA_CUDA_DEVICE_FAULTS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda/arrays/reduce.h"
#include "cuda/device/gpu.h"

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

inline constexpr int64_t kNoFault = std::numeric_limits<int64_t>::max();

// The first of every `step`-th value from `begin` on.
template <typename IsBad>
__device__ int64_t FindFirst(int64_t n, const float* values, const IsBad& is_bad, int64_t begin, int64_t step) {
  constexpr int kAtOnce = 8;  // loads that are on their way at a time
  for (; begin < n; begin += kAtOnce * step) {
    float some[kAtOnce];
    CREMA_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t i = begin + k * step;
      some[k] = values[i < n ? i : begin];
    }
    CREMA_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t i = begin + k * step;
      if (i < n && AskWhetherBad(is_bad, some[k], i)) return i;
    }
  }
  return kNoFault;
}

template <typename IsBad>
__device__ void Tell(PassState* state, int unit, const float* values, const IsBad& is_bad, int64_t first) {
  state->result.faulty_unit = unit;
  state->result.value = values[first];
  state->result.position = PositionToTell(is_bad, first);
}

// One block, so that the first one is known without a second kernel.
template <typename IsBad>
__global__ void __launch_bounds__(kFaultThreads)
    ReportFirstKernel(PassState* state, int unit, int64_t n, const float* values, IsBad is_bad) {
  if (state->result.faulty_unit >= 0) return;  // the same for all threads: written behind the barriers below only
  int64_t first = FindFirst(n, values, is_bad, threadIdx.x, blockDim.x);
  first = ReduceBlock(first, kNoFault, Smaller());
  if (threadIdx.x == 0 && first != kNoFault) Tell(state, unit, values, is_bad, first);
}

template <typename IsBad>
__global__ void __launch_bounds__(kFaultThreads)
    FindFirstKernel(PassState* state, int64_t n, const float* values, IsBad is_bad) {
  if (state->result.faulty_unit >= 0) return;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  int64_t first = FindFirst(n, values, is_bad, int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step);
  first = ReduceBlock(first, kNoFault, Smaller());
  if (threadIdx.x == 0 && first != kNoFault) atomicMin(&state->found, static_cast<unsigned long long>(first));
}

template <typename IsBad>
__global__ void TellFoundKernel(PassState* state, int unit, const float* values, IsBad is_bad) {
  if (state->found == PassState::kNothing) return;
  Tell(state, unit, values, is_bad, static_cast<int64_t>(state->found));
  state->found = PassState::kNothing;
}

}  // namespace internal

// Remembers the first of n values for which is_bad(value) or is_bad(value, position), a __device__ function object, in
// the result of the pass, unless that holds a fault already. Its position is what is_bad.PositionToTell(position) makes
// of it where there is such a function.
template <typename IsBad>
void ReportFirst(const Queue& queue, PassState* state, int unit, int64_t n, const float* values, IsBad is_bad) {
  if (n <= 0) return;
  constexpr int64_t kOfOneBlock = 32 * 1024;  // which takes it no longer than another kernel takes to start
  if (n > kOfOneBlock) {
    const int64_t blocks = std::min<int64_t>(queue.multiprocessors, n / (4 * int64_t{kFaultThreads}));
    Launch(queue, static_cast<unsigned>(blocks), kFaultThreads, internal::FindFirstKernel<IsBad>, state, n, values,
           is_bad);
    Launch(queue, 1, 1, internal::TellFoundKernel<IsBad>, state, unit, values, is_bad);
    return;
  }
  Launch(queue, 1, kFaultThreads, internal::ReportFirstKernel<IsBad>, state, unit, n, values, is_bad);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_FAULTS_H_
