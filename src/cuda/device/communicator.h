// Sums over several GPUs, beside what computes.
#ifndef CREMA_CUDA_DEVICE_COMMUNICATOR_H_
#define CREMA_CUDA_DEVICE_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cuda/device/gpu.h"
#include "device/communicator.h"
#include "device/meeting.h"
#include "device/processes.h"

namespace crema::cuda {

// CREMA_GPU_STALL_MS of the environment, or 300 s: how long ranks wait for each other on GPUs; 0: for ever. Throws
// EnvironmentError where it is no number.
std::chrono::milliseconds StallTime();

// Sums are issued to a stream of their own, which events order with the GPU's queue. Whoever waits for the GPU
// meanwhile is freed by a GroupError where sums fail, or do not end in StallTime() in which the GPU has nothing else to
// do: a GPU waits for ever for one that is gone.
class StreamCommunicator : public Communicator, private WaitWatch {
 public:
  // `meeting`: of the ranks' threads on the host. Throws what StallTime() does.
  StreamCommunicator(int rank, CudaGpu& gpu, std::shared_ptr<Meeting> meeting);
  // Of ranks that are processes.
  StreamCommunicator(CudaGpu& gpu, Processes& processes);
  ~StreamCommunicator() override;

  int rank() const override { return rank_; }
  int ranks() const override { return processes_ ? processes_->ranks() : meeting_->ranks(); }
  void SumInPlace(float* data, int64_t count) override;
  void Join() override;
  double SumOnHost(double value) override {
    return processes_ ? processes_->SumOnHost(value) : meeting_->Sum(rank_, value);
  }
  void Abort() override;

 protected:
  // Issues the sum to `stream`.
  virtual void Issue(float* data, int64_t count, cudaStream_t stream) = 0;
  // Throws where issued sums will not come to their end: Aborted, or what is wrong.
  virtual void CheckIssued() = 0;
  // Lets issued sums of the whole group end, whatever comes out.
  virtual void AbortIssued() = 0;

  const CudaGpu& gpu() const { return gpu_; }

 private:
  // Whose kernels may be loaded, and their graphs made, between two sums; later ones do that before the first.
  static constexpr int kPassesThatLoad = 4;

  // The sums of a pass: when all before them was computed, and when they are done.
  struct Sums {
    cudaEvent_t computed = nullptr, summed = nullptr;
  };

  StreamCommunicator(int rank, CudaGpu& gpu, std::shared_ptr<Meeting> meeting, Processes* processes);

  void Look() override;
  // The pass, if any, for whose sums the GPU waits and for nothing else.
  std::optional<uint64_t> PassThatSums() const;
  [[noreturn]] void GiveUp(const std::string& what);

  const int rank_;
  CudaGpu& gpu_;
  const std::shared_ptr<Meeting> meeting_;  // null: ranks are processes
  Processes* const processes_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t ready_ = nullptr;
  // Of the latest passes, in turn: what the host waits for lies behind the sums of the pass before.
  Sums sums_[2];
  uint64_t passes_ = 0;      // that ended in Join
  bool has_summed_ = false;  // since then

  std::chrono::milliseconds stall_;  // 0: for ever
  std::optional<uint64_t> stalled_pass_;
  std::chrono::steady_clock::time_point stalled_since_;
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_COMMUNICATOR_H_
