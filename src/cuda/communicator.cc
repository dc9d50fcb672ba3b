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
  Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
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
  Issue(data, count, stream_);
}

void StreamCommunicator::Join() {
  Check(cudaEventRecord(done_, stream_), "recording an event");
  Check(cudaStreamWaitEvent(gpu_.queue().stream, done_, 0), "waiting for a sum over GPUs");
}

void StreamCommunicator::Abort() {
  if (meeting_) meeting_->Abort();
  AbortIssued();
}

}  // namespace crema::cuda
