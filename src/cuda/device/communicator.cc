#include "cuda/device/communicator.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/number_text.h"
#include "crema/error.h"

namespace crema::cuda {

namespace {

// As long as a coordinator waits for a worker that gets nowhere (stall_ms). Ranks wait for each other on the host while
// one tests or writes a snapshot; what a sum waits for is another's computing and the reading of its batch.
constexpr std::chrono::milliseconds kStall{300'000};

bool HasCome(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  Check(status, "summing over GPUs");
  return true;
}

}  // namespace

std::chrono::milliseconds StallTime() {
  const char* const given = std::getenv("CREMA_GPU_STALL_MS");
  if (!given || !*given) return kStall;
  const std::string_view text = given;
  uint32_t milliseconds = 0;
  if (!ParseWhole(text, &milliseconds)) {
    throw EnvironmentError(
        "CREMA_GPU_STALL_MS=" + std::string(text) +
        " in the environment: expected how many milliseconds a sum over GPUs may take, 0 for no limit");
  }
  return std::chrono::milliseconds(milliseconds);
}

StreamCommunicator::StreamCommunicator(int rank, CudaGpu& gpu, std::shared_ptr<Meeting> meeting)
    : StreamCommunicator(rank, gpu, std::move(meeting), nullptr) {}

StreamCommunicator::StreamCommunicator(CudaGpu& gpu, Processes& processes)
    : StreamCommunicator(processes.rank(), gpu, nullptr, &processes) {}

StreamCommunicator::StreamCommunicator(int rank, CudaGpu& gpu, std::shared_ptr<Meeting> meeting, Processes* processes)
    : rank_(rank), gpu_(gpu), meeting_(std::move(meeting)), processes_(processes), stall_(StallTime()) {
  gpu.UseHere();
  // Sums go before what computes: other GPUs wait for them.
  int lowest = 0, highest = 0;
  Check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities");
  Check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest), "making a stream");
  Check(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), "making an event");
  for (Sums& sums : sums_) {
    Check(cudaEventCreateWithFlags(&sums.computed, cudaEventDisableTiming), "making an event");
    Check(cudaEventCreateWithFlags(&sums.summed, cudaEventDisableTiming), "making an event");
  }
  gpu.set_watch(this);
}

StreamCommunicator::~StreamCommunicator() {
  if (gpu_.watch() == this) gpu_.set_watch(nullptr);
  for (const Sums& sums : sums_) {
    cudaEventDestroy(sums.summed);
    cudaEventDestroy(sums.computed);
  }
  cudaEventDestroy(ready_);
  cudaStreamDestroy(stream_);
}

void StreamCommunicator::SumInPlace(float* data, int64_t count) {
  Check(cudaEventRecord(ready_, gpu_.queue().stream), "recording an event");
  Check(cudaStreamWaitEvent(stream_, ready_, 0), "waiting before a sum over GPUs");
  // A sum occupies its GPU until the others have come to it. Calls that allocate memory, load kernels or make graphs
  // may wait for all GPUs that see each other's memory: a thread in such a call, before its part of the sum, would wait
  // for ever. So no sum begins unless all threads are there.
  if (meeting_ && (passes_ < kPassesThatLoad || !has_summed_)) meeting_->Exchange(rank_, 0);
  has_summed_ = true;
  Issue(data, count, stream_);
}

void StreamCommunicator::Join() {
  const Sums& sums = sums_[passes_ % 2];
  Check(cudaEventRecord(sums.computed, gpu_.queue().stream), "recording an event");
  Check(cudaEventRecord(sums.summed, stream_), "recording an event");
  Check(cudaStreamWaitEvent(gpu_.queue().stream, sums.summed, 0), "waiting for a sum over GPUs");
  has_summed_ = false;
  ++passes_;
}

void StreamCommunicator::Abort() {
  if (meeting_) meeting_->Abort();
  AbortIssued();
}

std::optional<uint64_t> StreamCommunicator::PassThatSums() const {
  for (uint64_t pass = passes_ < 2 ? 0 : passes_ - 2; pass < passes_; ++pass) {
    const Sums& sums = sums_[pass % 2];
    if (!HasCome(sums.computed)) return std::nullopt;
    if (!HasCome(sums.summed)) return pass;
  }
  return std::nullopt;
}

void StreamCommunicator::Look() {
  try {
    CheckIssued();
  } catch (const EnvironmentError& error) {
    GiveUp(error.what());
  }
  const auto now = std::chrono::steady_clock::now();
  const std::optional<uint64_t> pass = PassThatSums();
  if (!pass || pass != stalled_pass_) {
    stalled_pass_ = pass;
    stalled_since_ = now;
  } else if (stall_.count() > 0 && now - stalled_since_ >= stall_) {
    GiveUp("a sum over the GPUs has not ended in " + std::to_string(stall_.count()) +
           " ms (CREMA_GPU_STALL_MS in the environment says how long one may take; 0: for ever)");
  }
}

void StreamCommunicator::GiveUp(const std::string& what) {
  Abort();
  throw GroupError(
      "rank " + std::to_string(rank_) + " of " + std::to_string(ranks()) + ", on GPU " + std::to_string(gpu_.id()) +
      " (" + gpu_.name() + "): " + what +
      ". Another rank died or hangs, or a GPU or what connects them failed: look at what the other ranks say, at "
      "nvidia-smi, and in the system's log (dmesg) for NVRM and Xid. Where it never gets through the first sum, "
      "NCCL_DEBUG=INFO shows more, and NCCL_P2P_DISABLE=1 may help. Then go on from the last snapshot "
      "(--snapshot=auto)");
}

}  // namespace crema::cuda
