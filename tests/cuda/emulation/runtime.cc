#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernel.h"
#include "memory.h"

using crema_emulation::kDeviceBytes;
using crema_emulation::kDevices;
using crema_emulation::Memory;
using crema_emulation::Pinned;

namespace {

using Work = std::function<bool()>;  // whether it is done, or to be tried again

thread_local cudaError_t last_error = cudaSuccess;
cudaError_t Fail(cudaError_t error) { return last_error = error; }

thread_local int current_device = 0;

// With CREMA_EMULATED_FAULT=DEVICE:N in the environment the N-th kernel of that device is its last: it reads what it
// must not, and all that is asked of the device from then on fails.
class Fault {
 public:
  Fault() {
    const char* const given = std::getenv("CREMA_EMULATED_FAULT");
    if (!given || std::sscanf(given, "%d:%lld", &device_, &left_) != 2) device_ = -1;
  }
  bool Is(int device) const { return device == device_ && left_ <= 0; }
  // Of a kernel that begins.
  void Count(int device) {
    if (device == device_) --left_;
  }

 private:
  int device_ = -1;
  long long left_ = 0;
};
Fault fault;

// The stream that this thread captures.
thread_local CUstream_st* captured = nullptr;
// What must not be done while a stream is captured breaks the capture.
cudaError_t FailInCapture(CUstream_st* stream = captured);

}  // namespace

// --- Streams: queues of work that runs when somebody waits. ---

struct CUevent_st {
  explicit CUevent_st(int given) : device(given) {}
  const int device;
  cudaStream_t stream = nullptr;  // of the latest record
  uint64_t after = 0;             // how many entries of that stream come before it
  // Recorded even where the event is destroyed before that.
  const std::shared_ptr<std::chrono::steady_clock::time_point> time =
      std::make_shared<std::chrono::steady_clock::time_point>();
};

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};

struct CUstream_st {
  explicit CUstream_st(int given) : device(given) {}
  const int device;
  std::deque<Work> queue;
  uint64_t done = 0;  // entries
  bool capturing = false;
  bool broken = false;  // the capture
  CUgraph_st* capture = nullptr;

  uint64_t issued() const { return done + queue.size(); }
  // As far as work lets itself be done now; whether all of it was.
  bool TryUntil(uint64_t count) {
    if (done >= count || queue.empty()) return true;
    const crema_emulation::Access access(device);  // once, as it takes longer than most kernels
    while (done < count && !queue.empty()) {
      if (!fault.Is(device) && !queue.front()()) return false;
      queue.pop_front();
      ++done;
    }
    return true;
  }
  void RunUntil(uint64_t count) {
    while (!TryUntil(count)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
};

namespace {

cudaError_t FailInCapture(CUstream_st* stream) {
  stream->broken = true;
  return Fail(cudaErrorStreamCaptureUnsupported);
}

}  // namespace

namespace crema_emulation {

cudaError_t LaunchKernel(const cudaLaunchConfig_t& config, std::function<void()> body) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool fits = threads >= 1 && threads <= 1024 && grid.x >= 1 && grid.y >= 1 && grid.z >= 1 &&
                    grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535 && config.dynamicSmemBytes <= 49152;
  if (!fits || !config.stream) return Fail(cudaErrorInvalidValue);
  if (config.stream->device != current_device) return Fail(cudaErrorInvalidResourceHandle);
  if (fault.Is(current_device)) return Fail(cudaErrorIllegalAddress);
  return Enqueue(config.stream, [grid, block, body = std::move(body), device = config.stream->device] {
    fault.Count(device);
    if (!fault.Is(device)) RunKernel(grid, block, body);
  });
}

cudaError_t Enqueue(cudaStream_t stream, std::function<void()> work) {
  return EnqueueTried(stream, [work = std::move(work)] { return work(), true; });
}

cudaError_t EnqueueTried(cudaStream_t stream, Work work) {
  if (!stream) return Fail(cudaErrorInvalidValue);  // the default stream waits for all others: a mistake here
  if (stream->capturing) {
    stream->capture->work.push_back(std::move(work));
  } else {
    stream->queue.push_back(std::move(work));
  }
  return cudaSuccess;
}

}  // namespace crema_emulation

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
  }
  return "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = kDevices, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return Fail(cudaErrorNoDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Emulated GPU %d", device);
  properties->totalGlobalMem = kDeviceBytes;
  properties->major = 9;
  // Grids, and what is added up in parts, depend on it: 2 unless the environment says another number.
  const char* const multiprocessors = std::getenv("CREMA_EMULATED_MULTIPROCESSORS");
  properties->multiProcessorCount = multiprocessors ? std::atoi(multiprocessors) : 2;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = Memory(current_device).free_bytes();
  *total = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (captured) return FailInCapture();
  if (fault.Is(current_device)) return Fail(cudaErrorIllegalAddress);
  *data = Memory(current_device).Allocate(bytes);
  return *data ? cudaSuccess : Fail(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* data) {
  if (captured) return FailInCapture();
  if (!data) return cudaSuccess;
  for (int device = 0; device < kDevices; ++device) {
    if (Memory(device).Free(data)) return cudaSuccess;
  }
  return Fail(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  if (captured) return FailInCapture();
  *data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!*data) return Fail(cudaErrorMemoryAllocation);
  Pinned().Add(*data, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  if (captured) return FailInCapture();
  Pinned().Remove(data);
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool pinned = kind == cudaMemcpyDeviceToDevice || Pinned().Holds(kind == cudaMemcpyHostToDevice ? from : to);
  if (fault.Is(stream->device)) return Fail(cudaErrorIllegalAddress);
  if (captured && !pinned) return FailInCapture();  // a replay would copy to or from where something else is by then
  return crema_emulation::Enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_stride, const void* from, size_t from_stride, size_t width,
                              size_t rows, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_stride || width > from_stride) return Fail(cudaErrorInvalidValue);
  return crema_emulation::Enqueue(stream, [=] {
    for (size_t row = 0; row < rows; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * to_stride,
                  static_cast<const std::byte*>(from) + row * from_stride, width);
    }
  });
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  return crema_emulation::Enqueue(stream, [=] { std::memset(data, value, bytes); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st(current_device);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = *highest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  // What cannot be done yet is done later, or never: it is not waited for. Other streams may wait for it, however.
  static std::mutex mutex;
  static auto& destroyed = *new std::vector<std::unique_ptr<CUstream_st>>;
  stream->TryUntil(stream->issued());
  const std::lock_guard lock(mutex);
  destroyed.emplace_back(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->capturing) return FailInCapture(stream);
  stream->RunUntil(stream->issued());
  return fault.Is(stream->device) ? Fail(cudaErrorIllegalAddress) : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const cudaStream_t other = event->stream;
  const uint64_t after = event->after;
  if (!other || other == stream) return cudaSuccess;
  if (stream->capturing) {  // the graph would depend on work that is not in it
    stream->broken = true;
    return Fail(cudaErrorStreamCaptureIsolation);
  }
  return crema_emulation::EnqueueTried(stream, [=] {
    const crema_emulation::NoAccess closed(stream->device);  // to kernels of other devices
    return other->TryUntil(after);
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st(current_device);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->device != stream->device) return Fail(cudaErrorInvalidResourceHandle);
  if (fault.Is(stream->device)) return Fail(cudaErrorIllegalAddress);
  if (stream->capturing) return FailInCapture(stream);  // such an event could not be waited for
  const cudaError_t error =
      crema_emulation::Enqueue(stream, [time = event->time] { *time = std::chrono::steady_clock::now(); });
  event->stream = stream;
  event->after = stream->issued();
  return error;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream) event->stream->RunUntil(event->after);
  return fault.Is(event->device) ? Fail(cudaErrorIllegalAddress) : cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->stream && !event->stream->TryUntil(event->after)) return Fail(cudaErrorNotReady);
  return fault.Is(event->device) ? Fail(cudaErrorIllegalAddress) : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->capturing) return Fail(cudaErrorStreamCaptureUnsupported);
  stream->capturing = true;
  stream->capture = new CUgraph_st;
  captured = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  stream->capturing = false;
  captured = nullptr;
  *graph = std::exchange(stream->capture, nullptr);
  if (!std::exchange(stream->broken, false)) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return Fail(cudaErrorStreamCaptureInvalidated);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (fault.Is(stream->device)) return Fail(cudaErrorIllegalAddress);
  for (const Work& work : executable->work) crema_emulation::EnqueueTried(stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return delete executable, cudaSuccess; }
