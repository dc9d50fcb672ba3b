// CUDA's runtime as far as src/cuda uses it, on the CPU: kernels are compiled by the host's compiler and run thread by
// thread. So everything but the libraries behind cuDNN and cuBLAS, and everything but speed, is tested without a GPU.
//
// It is meaner than a GPU where that finds mistakes:
// - device memory can be touched by kernels and copies only; the host gets SIGSEGV;
// - streams do nothing until something waits for them or asks for an event, and then only what that needs, so an order
// that was not asked
//   for does not happen by luck; pinned memory that is reused too early shows;
// - memory is filled with NaNs when it is allocated;
// - every other kernel takes blocks and threads from the last to the first;
// - what may not be done while a stream is captured is an error: waiting, allocating and freeing, copies from and to
//   memory that is not pinned, dependence on work outside;
// - a kernel starts on a stream of the thread's current device only, and reaches no other device's memory;
// - a number or pack that is not aligned to its size ends the process (CMakeLists.txt).
// Signatures and meanings: NVIDIA, CUDA Runtime API, version 12 and later.
#ifndef CREMA_TESTS_CUDA_EMULATION_CUDA_RUNTIME_H_
#define CREMA_TESTS_CUDA_EMULATION_CUDA_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define __constant__ static
#define CREMA_CUDA_EMULATION 1

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

namespace crema_emulation {
void SynchronizeThreads();
// Of the warp: what thread `lane` gave; all threads of the block's warp must call.
uint64_t Exchange(uint64_t given, unsigned lane);
unsigned Lane();
unsigned WarpSize();
}  // namespace crema_emulation

// Where the kernel's thread that runs now is.
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;
constexpr int warpSize = 32;

inline void __syncthreads() { ::crema_emulation::SynchronizeThreads(); }
inline void __threadfence() {}

template <typename T>
T __shfl_sync(unsigned, T value, int lane, int = 32) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = ::crema_emulation::Exchange(bits, static_cast<unsigned>(lane));
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int = 32) {
  const unsigned from = ::crema_emulation::Lane() + delta;
  return __shfl_sync(mask, value, static_cast<int>(from < 32 ? from : ::crema_emulation::Lane()));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int other, int = 32) {
  return __shfl_sync(mask, value, static_cast<int>(::crema_emulation::Lane() ^ static_cast<unsigned>(other)));
}

template <typename T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}
template <typename T>
T atomicMin(T* at, T value) {
  const T before = *at;
  if (value < before) *at = value;
  return before;
}
template <typename T>
T atomicMax(T* at, T value) {
  const T before = *at;
  if (value > before) *at = value;
  return before;
}
template <typename T>
T atomicExch(T* at, T value) {
  const T before = *at;
  *at = value;
  return before;
}

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureIsolation = 905,
};
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2,
                   cudaHostAllocDefault = 0;

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
};

cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);

cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_stride, const void* from, size_t from_stride, size_t width,
                              size_t rows, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
namespace crema_emulation {
cudaError_t LaunchKernel(const cudaLaunchConfig_t& config, std::function<void()> body);
// Runs `work` on the stream as a kernel would be: for what stands in for the libraries.
cudaError_t Enqueue(cudaStream_t stream, std::function<void()> work);
// The same of work that waits for others: it says whether it is done, and is tried again until then.
cudaError_t EnqueueTried(cudaStream_t stream, std::function<bool()> work);
}  // namespace crema_emulation
template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return ::crema_emulation::LaunchKernel(
      *config, [kernel, ... given = static_cast<Parameters>(arguments)]() mutable { kernel(given...); });
}

#endif  // CREMA_TESTS_CUDA_EMULATION_CUDA_RUNTIME_H_
