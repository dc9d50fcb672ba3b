#include <chrono>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <thread>

#include "crema/error.h"
#include "cuda/device/gpu.h"
#include "cuda/operations.h"
#include "device/communicator.h"

namespace crema::cuda {

namespace {

std::string MiB(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// What was given up ends soon, or never.
bool EndsSoon(cudaEvent_t event) {
  constexpr std::chrono::milliseconds kPause(10);
  cudaError_t status = cudaErrorNotReady;
  for (int pauses = 0; status == cudaErrorNotReady && pauses < 500; ++pauses) {
    std::this_thread::sleep_for(kPause);
    status = cudaEventQuery(event);
    cudaGetLastError();
  }
  return status == cudaSuccess;
}

class Event final : public GpuEvent {
 public:
  explicit Event(CudaGpu& gpu) : gpu_(gpu) {
    Check(cudaEventCreateWithFlags(&event_, kSleepingEvent), "making an event");
  }
  ~Event() override { cudaEventDestroy(event_); }
  void Record() override { Check(cudaEventRecord(event_, gpu_.queue().stream), "recording an event"); }
  void Wait() override { gpu_.Await(event_); }
  double SecondsSince(const GpuEvent& begin) const override {
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, static_cast<const Event&>(begin).event_, event_), "reading a clock");
    return milliseconds * 1e-3;
  }

 private:
  CudaGpu& gpu_;
  cudaEvent_t event_ = nullptr;
};

class Graph final : public GpuGraph {
 public:
  Graph(const CudaGpu& gpu, cudaGraph_t graph) : gpu_(gpu) {
    Check(cudaGraphInstantiate(&executable_, graph, 0), "preparing a CUDA graph");
  }
  ~Graph() override {
    if (gpu_.lost()) return;
    cudaStreamSynchronize(gpu_.queue().stream);  // it may be under way
    cudaGraphExecDestroy(executable_);
  }
  void Launch() override { Check(cudaGraphLaunch(executable_, gpu_.queue().stream), "launching a CUDA graph"); }

 private:
  const CudaGpu& gpu_;
  cudaGraphExec_t executable_ = nullptr;
};

__global__ void SetPass(PassState* state, uint64_t pass) {
  state->pass = pass;
  state->result = GpuPassResult{};
  state->found = PassState::kNothing;
}

__global__ void CopyLossKernel(const PassState* state, float* loss) {
  const bool usable = state->result.faulty_unit < 0;
  *loss = usable ? static_cast<float>(state->result.loss) : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

void Throw(cudaError_t error, const std::string& what) {
  cudaGetLastError();  // an error left behind would surface in the next unrelated call
  throw EnvironmentError(what + " failed: " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

CudaGpu::CudaGpu(int id) : id_(id) {
  std::string why;
  const int count = CountGpus(&why);
  if (id < 0 || id >= count) {
    if (count == 0) throw EnvironmentError("no GPU: " + why);
    throw EnvironmentError("there is no GPU " + std::to_string(id) + ": this machine shows " + std::to_string(count) +
                           ", counted from 0 (crema device_query lists them)");
  }
  UseHere();
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, id), "asking what the GPU is");
  name_ = properties.name;
  capability_ = 10 * properties.major + properties.minor;
  queue_.multiprocessors = properties.multiProcessorCount;
  Check(cudaStreamCreateWithFlags(&queue_.stream, cudaStreamNonBlocking), "making a stream");
  Check(cudaStreamCreateWithFlags(&uploads_, cudaStreamNonBlocking), "making a stream");
  Check(cudaEventCreateWithFlags(&between_, cudaEventDisableTiming), "making an event");
  Check(cudaEventCreateWithFlags(&issued_, cudaEventDisableTiming | kSleepingEvent), "making an event");
  state_ = static_cast<PassState*>(Allocate(sizeof(PassState)));
  operations_ = std::make_unique<CudaOperations>(*this);
  try {
    BeginPass(0);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(
        std::string(error.what()) + "; GPU " + std::to_string(id) + " (" + name_ + ") has compute capability " +
        std::to_string(capability_ / 10) + "." + std::to_string(capability_ % 10) +
        ": where this build has no code for it, build with -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(capability_));
  }
}

CudaGpu::~CudaGpu() {
  operations_.reset();
  cudaFree(state_);
  cudaEventDestroy(issued_);
  cudaEventDestroy(between_);
  cudaStreamDestroy(uploads_);
  cudaStreamDestroy(queue_.stream);
}

void CudaGpu::UseHere() const { Check(cudaSetDevice(id_), "choosing the GPU"); }

void CudaGpu::Await(cudaEvent_t event) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds, std::chrono::microseconds;
  const Clock::time_point begin = Clock::now();
  for (Clock::duration looked = {}; !lost_;) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) Throw(status, "computing on the GPU");
    cudaGetLastError();
    const Clock::duration waited = Clock::now() - begin;
    if (waited < milliseconds(1)) continue;
    if (!watch_) return Check(cudaEventSynchronize(event), "computing on the GPU");
    if (waited - looked >= milliseconds(1)) {
      looked = waited;
      Look(event);
    }
    std::this_thread::sleep_for(waited < milliseconds(100) ? microseconds(50) : microseconds(1000));
  }
  throw EnvironmentError("GPU " + std::to_string(id_) + " (" + name_ + ") no longer answers");
}

void CudaGpu::Look(cudaEvent_t event) {
  try {
    return watch_->Look();
  } catch (const Aborted&) {
    // Another rank failed. What this one has to tell, too, is known when its pass has ended; its next sum throws.
    lost_ = !EndsSoon(event);
    if (lost_) throw;
  } catch (...) {
    lost_ = !EndsSoon(event);
    throw;
  }
}

void CudaGpu::Wait() {
  Check(cudaEventRecord(issued_, queue_.stream), "recording an event");
  Await(issued_);
}

void* CudaGpu::Allocate(size_t bytes) {
  UseHere();
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw EnvironmentError("not enough memory on GPU " + std::to_string(id_) + " (" + name_ + ") for " + MiB(bytes) +
                           "; " + MiB(FreeMemory()) +
                           " are free. End other programs that use it (nvidia-smi lists them), lower batch_size (and "
                           "raise iter_size to keep the effective batch), or set recompute: AUTO");
  }
  Check(error, "allocating GPU memory");
  return data;
}

void CudaGpu::Free(void* data) {
  if (lost_) return;
  // Nothing that is still to be done may use it.
  cudaStreamSynchronize(uploads_);
  cudaStreamSynchronize(queue_.stream);
  cudaFree(data);
}

size_t CudaGpu::FreeMemory() const {
  UseHere();
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "asking for free GPU memory");
  return free;
}

void CudaGpu::CopyIn(const void* host, void* data, size_t bytes) {
  if (watch_) Wait();  // the copy itself may wait for the queue, unwatched
  Check(cudaMemcpyAsync(data, host, bytes, cudaMemcpyHostToDevice, queue_.stream), "copying to the GPU");
  Wait();
}

void CudaGpu::CopyOut(const void* data, void* host, size_t bytes) {
  if (watch_) Wait();  // likewise
  Check(cudaMemcpyAsync(host, data, bytes, cudaMemcpyDeviceToHost, queue_.stream), "copying from the GPU");
  Wait();
}

void* CudaGpu::AllocateHost(size_t bytes) {
  UseHere();
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw EnvironmentError("the system does not let " + MiB(bytes) +
                           " of its memory be pinned for copies to the GPU; lower batch_size, or let it (ulimit -l, "
                           "or the memory limit of the container)");
  }
  Check(error, "allocating memory for copies to the GPU");
  return data;
}

void CudaGpu::FreeHost(void* data) {
  if (lost_) return;
  cudaStreamSynchronize(uploads_);
  cudaStreamSynchronize(queue_.stream);
  cudaFreeHost(data);
}

void CudaGpu::StartUpload(const void* host, void* data, size_t bytes) {
  Check(cudaMemcpyAsync(data, host, bytes, cudaMemcpyHostToDevice, uploads_), "copying to the GPU");
}

void CudaGpu::JoinUploads() {
  Check(cudaEventRecord(between_, uploads_), "recording an event");
  Check(cudaStreamWaitEvent(queue_.stream, between_, 0), "waiting for an upload");
}

std::unique_ptr<GpuEvent> CudaGpu::MakeEvent() {
  UseHere();
  return std::make_unique<Event>(*this);
}

std::unique_ptr<GpuGraph> CudaGpu::Capture(const std::function<void()>& issue) {
  const char* const wanted = std::getenv("CREMA_GPU_GRAPHS");
  if (wanted && std::string_view(wanted) == "0") return nullptr;
  UseHere();
  Check(cudaStreamBeginCapture(queue_.stream, cudaStreamCaptureModeThreadLocal), "capturing a CUDA graph");
  cudaGraph_t graph = nullptr;
  bool capturing = true;
  const auto end = [&] {
    capturing = false;
    return cudaStreamEndCapture(queue_.stream, &graph);
  };
  const auto give_up = [&] {
    if (capturing) end();
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  };
  try {
    issue();
    Check(end(), "capturing a CUDA graph");
    auto made = std::make_unique<Graph>(*this, graph);
    cudaGraphDestroy(graph);
    return made;
  } catch (const EnvironmentError& error) {
    give_up();
    throw EnvironmentError(
        std::string(error.what()) +
        "; this was while a CUDA graph was made, which CREMA_GPU_GRAPHS=0 in the environment avoids");
  } catch (...) {
    give_up();
    throw;
  }
}

void CudaGpu::BeginUnit(int unit) {
  UseHere();
  unit_ = unit;
}

void CudaGpu::BeginPass(uint64_t pass) {
  UseHere();
  Launch(queue_, 1, 1, SetPass, state_, pass);
}

void CudaGpu::CopyOutLater(const void* data, void* host, size_t bytes) {
  Check(cudaMemcpyAsync(host, data, bytes, cudaMemcpyDeviceToHost, queue_.stream), "copying from the GPU");
}

void CudaGpu::CopyLoss(float* loss) { Launch(queue_, 1, 1, CopyLossKernel, state_, loss); }

namespace {

std::unique_ptr<Gpu> Open(int id) { return std::make_unique<CudaGpu>(id); }

}  // namespace

}  // namespace crema::cuda

extern "C" {
extern const crema::GpuLibrary crema_gpu_library;
const crema::GpuLibrary crema_gpu_library{crema::kGpuInterface, crema::cuda::Open, crema::cuda::Describe,
                                          crema::cuda::ConnectGpus, crema::cuda::ConnectGpu};
}
