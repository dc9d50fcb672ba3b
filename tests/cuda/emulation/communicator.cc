// Stands in for src/cuda/communicator_nccl.cc: ranks meet in the work of their streams.
#include "cuda/communicator.h"

namespace crema::cuda {

namespace {

class EmulatedCommunicator final : public StreamCommunicator {
 public:
  EmulatedCommunicator(int rank, const CudaGpu& gpu, std::shared_ptr<Meeting> threads, std::shared_ptr<Meeting> streams)
      : StreamCommunicator(rank, gpu, std::move(threads)), streams_(std::move(streams)) {}

 private:
  void Issue(float* data, int64_t count, cudaStream_t stream) override {
    const auto work = [streams = streams_, rank = rank(), data, count] {
      try {
        streams->SumInPlace(rank, data, count);
      } catch (const Aborted&) {
        // The sums are arbitrary then.
      }
    };
    Check(crema_emulation::Enqueue(stream, work), "summing over GPUs");
  }
  void AbortIssued() override { streams_->Abort(); }

  const std::shared_ptr<Meeting> streams_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> ConnectGpus(const std::vector<Gpu*>& gpus) {
  const int ranks = static_cast<int>(gpus.size());
  const auto threads = std::make_shared<Meeting>(ranks), streams = std::make_shared<Meeting>(ranks);
  std::vector<std::unique_ptr<Communicator>> group;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& gpu = static_cast<const CudaGpu&>(*gpus[rank]);
    group.push_back(std::make_unique<EmulatedCommunicator>(rank, gpu, threads, streams));
  }
  return group;
}

}  // namespace crema::cuda
