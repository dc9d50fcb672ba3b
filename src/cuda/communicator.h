// Sums over several GPUs, beside what computes.
#ifndef CREMA_CUDA_COMMUNICATOR_H_
#define CREMA_CUDA_COMMUNICATOR_H_

#include <memory>

#include "cuda/gpu.h"
#include "device/communicator.h"
#include "device/meeting.h"
#include "device/processes.h"

namespace crema::cuda {

// Sums are issued to a stream of their own, which events order with the GPU's queue.
class StreamCommunicator : public Communicator {
 public:
  // `meeting`: of the ranks' threads on the host.
  StreamCommunicator(int rank, const CudaGpu& gpu, std::shared_ptr<Meeting> meeting);
  // Of ranks that are processes.
  StreamCommunicator(const CudaGpu& gpu, Processes& processes);
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
  // Lets issued sums of the whole group end, whatever comes out.
  virtual void AbortIssued() = 0;

  const CudaGpu& gpu() const { return gpu_; }

 private:
  // Whose kernels may be loaded, and their graphs made, between two sums; later ones do that before the first.
  static constexpr int kPassesThatLoad = 4;

  StreamCommunicator(int rank, const CudaGpu& gpu, std::shared_ptr<Meeting> meeting, Processes* processes);

  const int rank_;
  const CudaGpu& gpu_;
  const std::shared_ptr<Meeting> meeting_;  // null: ranks are processes
  Processes* const processes_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t ready_ = nullptr, done_ = nullptr;
  int passes_ = 0;           // that ended in Join; kPassesThatLoad: or more
  bool has_summed_ = false;  // since then
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_COMMUNICATOR_H_
