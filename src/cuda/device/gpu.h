// A GPU behind CUDA.
#ifndef CREMA_CUDA_DEVICE_GPU_H_
#define CREMA_CUDA_DEVICE_GPU_H_

#include <memory>
#include <string>
#include <vector>

#include "cuda/device/launch.h"
#include "device/gpu.h"

namespace crema::cuda {

// What kernels read and write of a pass, in device memory.
struct PassState {
  static constexpr unsigned long long kNothing = ~0ull;

  uint64_t pass = 0;
  GpuPassResult result;
  // While many blocks look for an unusable value: the lowest position at which one of them found it.
  unsigned long long found = kNothing;
};

// Of an event: a thread that waits for it leaves its core to others.
inline constexpr unsigned kSleepingEvent = cudaEventBlockingSync;

// Asked again and again while a thread waits for a GPU's queue for longer than a moment.
class WaitWatch {
 public:
  virtual ~WaitWatch() = default;
  // Throws where the queue will not get on.
  virtual void Look() = 0;
};

class CudaGpu final : public Gpu {
 public:
  // Throws EnvironmentError where there is no such GPU.
  explicit CudaGpu(int id);
  ~CudaGpu() override;

  std::string name() const override { return name_; }
  bool ComputesBFloat16() const override { return capability_ >= 80; }
  bool ComputesFloat16() const override { return capability_ >= 53; }
  bool ComputesTF32() const override { return capability_ >= 80; }
  // CUDA's calls act on the GPU that the calling thread has chosen.
  void UseHere() const override;
  void* Allocate(size_t bytes) override;
  void Free(void* data) override;
  size_t FreeMemory() const override;
  void CopyIn(const void* host, void* data, size_t bytes) override;
  void CopyOut(const void* data, void* host, size_t bytes) override;
  Operations* operations() override { return operations_.get(); }

  void* AllocateHost(size_t bytes) override;
  void FreeHost(void* data) override;
  void StartUpload(const void* host, void* data, size_t bytes) override;
  void JoinUploads() override;
  std::unique_ptr<GpuEvent> MakeEvent() override;
  std::unique_ptr<GpuGraph> Capture(const std::function<void()>& issue) override;
  void BeginPass(uint64_t pass) override;
  void BeginUnit(int unit) override;
  GpuPassResult* result() override { return &state_->result; }
  void CopyOutLater(const void* data, void* host, size_t bytes) override;
  void CopyLoss(float* loss) override;

  // Returns when the event, one of this GPU's that sleep (kSleepingEvent), has come. Spins for a millisecond and sleeps
  // from then on. Throws what the watch does, and then the GPU may be lost().
  void Await(cudaEvent_t event);
  // Who watches over waits from here on; null: nobody.
  void set_watch(WaitWatch* watch) { watch_ = watch; }
  const WaitWatch* watch() const { return watch_; }
  // It did not come to an end of what it does though the watch gave that up: nothing may wait for it any more.
  bool lost() const { return lost_; }

  const Queue& queue() const { return queue_; }
  int unit() const { return unit_; }
  PassState* state() const { return state_; }
  int id() const { return id_; }
  // Major * 10 + minor.
  int capability() const { return capability_; }

 private:
  // Asks the watch while the event is waited for.
  void Look(cudaEvent_t event);
  void Wait();

  int id_, capability_ = 0, unit_ = 0;
  std::string name_;
  Queue queue_;
  cudaStream_t uploads_ = nullptr;
  cudaEvent_t between_ = nullptr;  // orders the two streams
  cudaEvent_t issued_ = nullptr;   // for Wait
  WaitWatch* watch_ = nullptr;
  bool lost_ = false;
  PassState* state_ = nullptr;
  std::unique_ptr<Operations> operations_;
};

std::vector<DeviceFacts> Describe(std::string* why);
// How many GPUs there are, without asking each what it is; 0: *why says why.
int CountGpus(std::string* why);
// communicator_nccl.cc
std::vector<std::unique_ptr<Communicator>> ConnectGpus(const std::vector<Gpu*>& gpus);
std::unique_ptr<Communicator> ConnectGpu(Gpu& gpu, Processes& processes);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_GPU_H_
