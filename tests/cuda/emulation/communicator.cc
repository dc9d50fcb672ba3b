// Stands in for src/cuda/communicator_nccl.cc: ranks meet in the work of their streams, those of other processes on the
// host.
#include "cuda/communicator.h"

#include <cstring>
#include <string>

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

class ProcessCommunicator final : public StreamCommunicator {
 public:
  ProcessCommunicator(const CudaGpu& gpu, Processes& processes)
      : StreamCommunicator(gpu, processes), processes_(processes) {}

 private:
  void Issue(float* data, int64_t count, cudaStream_t stream) override {
    const auto work = [this, data, count] {
      if (aborted_) return;
      const size_t bytes = static_cast<size_t>(count) * sizeof(float);
      const auto given = processes_.Gather(std::string(reinterpret_cast<const char*>(data), bytes));
      std::vector<float> sums(static_cast<size_t>(count)), addends(sums.size());
      for (const std::string& of_rank : given) {
        std::memcpy(addends.data(), of_rank.data(), bytes);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += addends[i];
      }
      std::memcpy(data, sums.data(), bytes);
    };
    Check(crema_emulation::Enqueue(stream, work), "summing over GPUs");
  }
  void AbortIssued() override { aborted_ = true; }

  Processes& processes_;
  bool aborted_ = false;
};

}  // namespace

std::unique_ptr<Communicator> ConnectGpu(Gpu& gpu, Processes& processes) {
  return std::make_unique<ProcessCommunicator>(static_cast<const CudaGpu&>(gpu), processes);
}

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
