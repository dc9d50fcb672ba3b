// GPUs. What computes on them is in a library of its own, libcrema_cuda, which is loaded when one is asked for:
// programs on the CPU neither need CUDA's libraries nor pay for loading them.
#ifndef CREMA_DEVICE_GPU_H_
#define CREMA_DEVICE_GPU_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/communicator.h"
#include "device/device.h"

namespace crema {

class Processes;

// A moment in the work that was issued to a GPU.
class GpuEvent {
 public:
  virtual ~GpuEvent() = default;
  // The moment when everything issued for computing so far is done.
  virtual void Record() = 0;
  // Returns when it has come; at once before the first Record. Throws GroupError or Aborted where the sums of a
  // communicator of this GPU fail or do not end.
  virtual void Wait() = 0;
  // Between two moments that have come.
  virtual double SecondsSince(const GpuEvent& begin) const = 0;
};

// Work that was issued once, to be issued again by one call.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  virtual void Launch() = 0;
};

// What a forward pass tells the host.
struct GpuPassResult {
  double loss = 0;
  // The first unusable value that was found (Operations::FindBadLabel): by which unit, which, and what it was.
  int32_t faulty_unit = -1;
  float value = 0;
  int64_t position = 0;
};

// Memory of AllocateHost.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  inline PinnedBuffer(class Gpu& gpu, size_t bytes);
  PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(data_, other.data_);
    return *this;
  }
  inline ~PinnedBuffer();
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  class Gpu* gpu_ = nullptr;
  void* data_ = nullptr;
};

// One GPU. Work is issued to one queue, in order, and done later; uploads to a second one. One thread at a time.
class Gpu : public Device {
 public:
  DeviceType type() const final { return DeviceType::kCuda; }

  // Memory of the host that the GPU copies from and to by itself.
  virtual void* AllocateHost(size_t bytes) = 0;
  virtual void FreeHost(void* data) = 0;

  // Starts a copy beside what computes, from memory of AllocateHost that must keep its contents until it is done.
  virtual void StartUpload(const void* host, void* data, size_t bytes) = 0;
  // What is issued from here on begins after the uploads started so far.
  virtual void JoinUploads() = 0;

  virtual std::unique_ptr<GpuEvent> MakeEvent() = 0;
  // Keeps what `issue` issues instead of doing it. Nothing in it may wait. Null, and nothing was done, with
  // CREMA_GPU_GRAPHS=0 in the environment.
  virtual std::unique_ptr<GpuGraph> Capture(const std::function<void()>& issue) = 0;

  // A forward pass begins: its number, of which random numbers depend, also where a graph of another pass is launched.
  virtual void BeginPass(uint64_t pass) = 0;
  // What is issued next belongs to this unit of the net.
  virtual void BeginUnit(int unit) = 0;
  // In the GPU's memory; BeginPass clears it. Losses are added up in it (Operations::AddLoss), and while one is not
  // finite, or a value was unusable, parameters are not updated.
  virtual GpuPassResult* result() = 0;
  // As Device::CopyOut, but done later: an event tells when. `host` is memory of AllocateHost.
  virtual void CopyOutLater(const void* data, void* host, size_t bytes) = 0;
  // Writes the loss of the pass to memory of the GPU; a NaN where a value was unusable.
  virtual void CopyLoss(float* loss) = 0;
};

PinnedBuffer::PinnedBuffer(Gpu& gpu, size_t bytes) : gpu_(&gpu), data_(bytes ? gpu.AllocateHost(bytes) : nullptr) {}
PinnedBuffer::~PinnedBuffer() {
  if (data_) gpu_->FreeHost(data_);
}

// The GPU of this number, as CUDA counts; made once for the process. Throws EnvironmentError, with the remedy, where
// the library, the driver or that GPU is not there. Thread-safe.
Gpu& OpenGpu(int id);

// Communicators between different GPUs, in their order. Throws EnvironmentError where they cannot be connected.
std::vector<std::unique_ptr<Communicator>> ConnectGpus(const std::vector<Gpu*>& gpus);

// The end of a group of processes, each of which has a GPU. Throws EnvironmentError where they cannot be connected.
std::unique_ptr<Communicator> ConnectGpu(Gpu& gpu, Processes& processes);

// What the GPU library exports under the name "crema_gpu_library".
struct GpuLibrary {
  uint32_t interface_version;  // kGpuInterface of the headers it was compiled with
  std::unique_ptr<Gpu> (*open)(int id);
  std::vector<DeviceFacts> (*describe)(std::string* why);
  std::vector<std::unique_ptr<Communicator>> (*connect)(const std::vector<Gpu*>& gpus);
  std::unique_ptr<Communicator> (*connect_process)(Gpu& gpu, Processes& processes);
};
inline constexpr uint32_t kGpuInterface = 4;

}  // namespace crema

#endif  // CREMA_DEVICE_GPU_H_
