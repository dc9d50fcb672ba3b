// Starting kernels.
#ifndef CREMA_CUDA_DEVICE_LAUNCH_H_
#define CREMA_CUDA_DEVICE_LAUNCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cuda/device/check.h"

// Before a loop of few turns that must not stay one, lest the arrays it indexes go to memory.
#if defined(__CUDACC__)
#define CREMA_UNROLL _Pragma("unroll")
#else
#define CREMA_UNROLL
#endif

namespace crema::cuda {

// Where and how wide kernels run.
struct Queue {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
};

inline constexpr unsigned kThreads = 256;  // of a block where nothing else is said

// The rest is for sources that hold kernels.
#if defined(__CUDACC__) || defined(CREMA_CUDA_EMULATION)

// kernel<<<grid, block, 0, stream>>>(arguments...)
template <typename... Parameters, typename... Arguments>
void Launch(const Queue& queue, dim3 grid, dim3 block, void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = queue.stream;
  Check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "starting a kernel");
}

// Blocks of `threads` for n independent pieces of work that threads stride over.
inline unsigned BlocksFor(const Queue& queue, int64_t n, unsigned threads = kThreads) {
  const int64_t whole = (n + threads - 1) / threads;
  return static_cast<unsigned>(std::clamp<int64_t>(whole, 1, int64_t{queue.multiprocessors} * 16));
}

template <typename Body>
__global__ void ForEachKernel(int64_t n, Body body) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) body(i);
}

// Calls body(i) for i in [0, n), in no order. `body`: a __device__ lambda or function object, copied.
template <typename Body>
void ForEach(const Queue& queue, int64_t n, const Body& body) {
  if (n <= 0) return;
  Launch(queue, BlocksFor(queue, n), kThreads, ForEachKernel<Body>, n, body);
}

#endif

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_LAUNCH_H_
