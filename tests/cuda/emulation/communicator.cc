// Stands in for src/cuda/communicator_nccl.cc: ranks meet in the work of their streams, those of other processes on the
// host. With CREMA_EMULATED_SUMS=N in the environment no sum of a rank behind its N-th comes to an end.
#include "cuda/communicator.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "memory.h"

namespace crema::cuda {

namespace {

uint64_t SumsThatEnd() {
  const char* const given = std::getenv("CREMA_EMULATED_SUMS");
  return given ? std::strtoull(given, nullptr, 10) : std::numeric_limits<uint64_t>::max();
}

// Sums of ranks that are threads. Who comes to one last makes it, in the order of the ranks.
class ThreadSums {
 public:
  explicit ThreadSums(size_t ranks) : ranks_(ranks) {}

  // Whether a rank's sum of this number is there, or arbitrary, after Abort. `data`: in its GPU's memory.
  bool Try(size_t rank, uint64_t number, float* data, int64_t count) {
    const std::lock_guard lock(mutex_);
    if (aborted_ || number < made_) return true;
    auto& came = came_[number];
    came[rank] = data;
    if (came.size() < ranks_ || number >= that_end_) return false;
    const crema_emulation::Access first(0), second(1);
    for (int64_t i = 0; i < count; ++i) {
      float sum = came.begin()->second[i];
      for (auto addend = std::next(came.begin()); addend != came.end(); ++addend) sum += addend->second[i];
      for (const auto& [of_rank, values] : came) values[i] = sum;
    }
    came_.erase(number);
    ++made_;
    return true;
  }
  void Abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  bool aborted() {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }

 private:
  const size_t ranks_;
  const uint64_t that_end_ = SumsThatEnd();
  std::mutex mutex_;
  std::map<uint64_t, std::map<size_t, float*>> came_;  // to sums that are under way, by rank
  uint64_t made_ = 0;
  bool aborted_ = false;
};

class EmulatedCommunicator final : public StreamCommunicator {
 public:
  EmulatedCommunicator(int rank, CudaGpu& gpu, std::shared_ptr<Meeting> threads, std::shared_ptr<ThreadSums> sums)
      : StreamCommunicator(rank, gpu, std::move(threads)), sums_(std::move(sums)) {}

 private:
  void Issue(float* data, int64_t count, cudaStream_t stream) override {
    const auto work = [sums = sums_, rank = static_cast<size_t>(rank()), number = issued_++, data, count] {
      return sums->Try(rank, number, data, count);
    };
    Check(crema_emulation::EnqueueTried(stream, work), "summing over GPUs");
  }
  void CheckIssued() override {
    if (sums_->aborted()) throw Aborted();
  }
  void AbortIssued() override { sums_->Abort(); }

  const std::shared_ptr<ThreadSums> sums_;
  uint64_t issued_ = 0;
};

class ProcessCommunicator final : public StreamCommunicator {
 public:
  ProcessCommunicator(CudaGpu& gpu, Processes& processes) : StreamCommunicator(gpu, processes), processes_(processes) {}

 private:
  void Issue(float* data, int64_t count, cudaStream_t stream) override {
    const auto work = [this, number = issued_++, data, count] {
      if (aborted_) return true;
      if (number >= that_end_) return false;
      const size_t bytes = static_cast<size_t>(count) * sizeof(float);
      const auto given = processes_.Gather(std::string(reinterpret_cast<const char*>(data), bytes));
      std::vector<float> sums(static_cast<size_t>(count)), addends(sums.size());
      for (const std::string& of_rank : given) {
        std::memcpy(addends.data(), of_rank.data(), bytes);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += addends[i];
      }
      std::memcpy(data, sums.data(), bytes);
      return true;
    };
    Check(crema_emulation::EnqueueTried(stream, work), "summing over GPUs");
  }
  void CheckIssued() override {
    if (aborted_) throw Aborted();
  }
  void AbortIssued() override { aborted_ = true; }

  Processes& processes_;
  const uint64_t that_end_ = SumsThatEnd();
  uint64_t issued_ = 0;
  std::atomic<bool> aborted_ = false;
};

}  // namespace

std::unique_ptr<Communicator> ConnectGpu(Gpu& gpu, Processes& processes) {
  return std::make_unique<ProcessCommunicator>(static_cast<CudaGpu&>(gpu), processes);
}

std::vector<std::unique_ptr<Communicator>> ConnectGpus(const std::vector<Gpu*>& gpus) {
  const auto threads = std::make_shared<Meeting>(static_cast<int>(gpus.size()));
  const auto sums = std::make_shared<ThreadSums>(gpus.size());
  std::vector<std::unique_ptr<Communicator>> group;
  for (Gpu* gpu : gpus) {
    const int rank = static_cast<int>(group.size());
    group.push_back(std::make_unique<EmulatedCommunicator>(rank, static_cast<CudaGpu&>(*gpu), threads, sums));
  }
  return group;
}

}  // namespace crema::cuda
