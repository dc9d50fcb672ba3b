#include "cuda/communicator.h"

#include <utility>

namespace crema::cuda {

StreamCommunicator::StreamCommunicator(int rank, const CudaGpu& gpu, std::shared_ptr<Meeting> meeting)
    : StreamCommunicator(rank, gpu, std::move(meeting), nullptr) {}

StreamCommunicator::StreamCommunicator(const CudaGpu& gpu, Processes& processes)
    : StreamCommunicator(processes.rank(), gpu, nullptr, &processes) {}

StreamCommunicator::StreamCommunicator(int rank, const CudaGpu& gpu, std::shared_ptr<Meeting> meeting,
                                       Processes* processes)
    : rank_(rank), gpu_(gpu), meeting_(std::move(meeting)), processes_(processes) {
  gpu.UseHere();
  // Sums go before what computes: other GPUs wait for them.
  int lowest = 0, highest = 0;
  Check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities");
  Check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest), "making a stream");
  Check(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), "making an event");
  Check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "making an event");
}

StreamCommunicator::~StreamCommunicator() {
  cudaEventDestroy(done_);
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
  Check(cudaEventRecord(done_, stream_), "recording an event");
  Check(cudaStreamWaitEvent(gpu_.queue().stream, done_, 0), "waiting for a sum over GPUs");
  has_summed_ = false;
  if (passes_ < kPassesThatLoad) ++passes_;
}

void StreamCommunicator::Abort() {
  if (meeting_) meeting_->Abort();
  AbortIssued();
}

}  // namespace crema::cuda
